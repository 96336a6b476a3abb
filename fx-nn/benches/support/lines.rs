//! A program that answers lines of standard input, one line each: the other side is a script of this folder.
#![allow(clippy::print_stdout, reason = "the answers are what it prints")]

use std::io::BufRead;

use fx_nn::prelude::*;

/// Prints an answer to each line, or its error.
pub fn answer_each(mut answer: impl FnMut(&str) -> Result<String>) {
    for line in std::io::stdin().lock().lines().map_while(|line| line.ok()) {
        match answer(&line) {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("error: {}", error.to_string().replace('\n', " ")),
        }
    }
}
