//! A page per pass: the graph after it, with what it changed, and an index of all.
//!
//! Invariant: the index names every page, in the order in which the passes ran.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::page::{Page, write};
use super::svg::Markup;
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::passes::{PassManager, PassObserver, PassRecord};

/// Writes a page per pass into a folder.
struct PassPages {
    folder: PathBuf,
    rows: Mutex<Vec<String>>,
}

impl PassManager {
    /// Writes a page per pass into a folder, which is made if it is not there: `000.html` is the
    /// graph at first, each further page has what the pass changed, and `index.html` lists them
    /// with times and counts.
    ///
    /// ```no_run
    /// use fx_core::prelude::*;
    /// use fx_core::passes::{Cse, DeadCode, PassManager};
    /// let mut gm = symbolic_trace(traced!(|x: Float| (x + 1.0)? * (x + 1.0)?))?;
    /// PassManager::new().pass(Cse::new()).pass(DeadCode).record_html("passes").run(&mut gm)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// A file that cannot be written is an error of the run.
    #[must_use]
    pub fn record_html(self, folder: impl AsRef<Path>) -> Self {
        self.observe(PassPages {
            folder: folder.as_ref().to_path_buf(),
            rows: Mutex::default(),
        })
    }
}

impl PassPages {
    fn add(&self, row: impl FnOnce(&str) -> Result<String>) -> Result<()> {
        // A panic in between leaves whole rows.
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("{:03}.html", rows.len());
        let row = row(&name)?;
        rows.push(row);
        let index = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"><title>passes</title>\n<style>:root{{color-scheme:light dark}}body{{font:14px system-ui;margin:2rem}}td,th{{padding:.2rem .8rem;text-align:right}}td:first-child,th:first-child{{text-align:left}}</style></head>\n<body><table><tr><th>pass<th>nodes<th>created<th>replaced<th>erased<th>edited<th>ms</tr>\n{}</table></body></html>\n",
            rows.concat()
        );
        write(&self.folder.join("index.html"), &index)
    }
}

impl PassObserver for PassPages {
    fn on_start(&self, gm: &GraphModule) -> Result<()> {
        std::fs::create_dir_all(&self.folder).map_err(Error::saved)?;
        self.rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.add(|name| {
            gm.to_html(self.folder.join(name), &Page::new())?;
            Ok(format!(
                "<tr><td><a href=\"{name}\">at first</a><td>{}</tr>\n",
                gm.graph().len()
            ))
        })
    }

    fn on_pass(
        &self,
        before: &GraphModule,
        after: &GraphModule,
        record: &PassRecord,
    ) -> Result<()> {
        self.add(|name| {
            before.diff(after).to_html(self.folder.join(name))?;
            let mut row = format!("<tr><td><a href=\"{name}\">{}</a>", Markup(&record.pass));
            let counts = [
                record.nodes_after,
                record.created.len(),
                record.replaced.len(),
                record.erased.len(),
                record.edited.len(),
            ];
            for count in counts {
                _ = write!(row, "<td>{count}");
            }
            _ = writeln!(row, "<td>{:.3}</tr>", record.time.as_secs_f64() * 1e3);
            Ok(row)
        })
    }
}
