//! A profile's trace file is what trace viewers read: JSON with complete events.

use fx_core::prelude::*;
use serde_json::Value as Json;

#[wrap]
fn double(x: Float) -> Result<Float> {
    x * 2.0
}

#[test]
fn trace_file_has_complete_events() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| double(double(x)?)? + 1.0))?;
    let profile = gm.profile(2, 1.5)?;
    let trace: Json = serde_json::from_str(&profile.to_chrome_trace()).map_err(Error::other)?;
    let events = trace["traceEvents"].as_array().expect("a list of events");
    assert_eq!(events.len(), 6);
    let mut end = 0.0;
    for event in events {
        assert_eq!(event["ph"], "X");
        assert!(event["name"].is_string() && event["cat"].is_string());
        assert!(event["pid"].is_u64() && event["tid"].is_u64());
        assert_eq!(event["args"]["bytes"], 0);
        // One step follows the other.
        let (start, time) = (event["ts"].as_f64(), event["dur"].as_f64());
        let (start, time) = start.zip(time).expect("numbers in microseconds");
        assert!(start + 0.002 >= end && time >= 0.0, "{event}");
        end = start + time;
    }
    let names: Vec<_> = events.iter().map(|e| e["name"].as_str()).collect();
    assert_eq!(names[..3], [Some("double"), Some("double_1"), Some("add")]);
    Ok(())
}

#[test]
fn table_has_a_line_for_each_call() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: Float| double(double(x)?)? + 1.0))?;
    let table = gm.profile(3, 1.5)?.to_string();
    // A head, three calls, the total.
    assert_eq!(table.lines().count(), 5);
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("double_1") && line.contains(" 3 "))
    );
    Ok(())
}
