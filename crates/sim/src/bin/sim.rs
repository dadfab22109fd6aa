//! `sim SCENARIO [--seeds FROM..TO | --trace SEED]`: runs histories and says what was wrong in them. `sim --list` names the scenarios.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::process::ExitCode;

use mizzen_sim::{Record, Scenario, campaign, run_caught, worlds};

/// How much of a history is shown with a violation.
const LAST_LINES: usize = 40;

enum Order {
    Seeds(Range<u64>),
    Trace(u64),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--list"] {
        for scenario in worlds::ALL {
            println!("{}", scenario.name);
        }
        return ExitCode::SUCCESS;
    }
    match parse(&arguments) {
        Ok((scenario, Order::Seeds(seeds))) => run_seeds(&scenario, seeds),
        Ok((scenario, Order::Trace(seed))) => trace(&scenario, seed),
        Err(sentence) => {
            eprintln!("{sentence}\n\nsim SCENARIO [--seeds FROM..TO | --trace SEED]\n");
            for scenario in worlds::ALL {
                eprintln!("  {:<16} {}", scenario.name, scenario.about);
            }
            ExitCode::from(2)
        }
    }
}

fn run_seeds(scenario: &Scenario, seeds: Range<u64>) -> ExitCode {
    let totals = campaign(scenario, seeds.clone());
    println!("{} {}..{}", scenario.name, seeds.start, seeds.end);
    print!("{totals}");
    if let Some((seed, violation)) = totals.violations.first() {
        println!("\nseed {seed}: {}: {}", violation.oracle, violation.what);
        let lines = run_caught(scenario, *seed, Record::Lines).lines;
        for line in lines.iter().skip(lines.len().saturating_sub(LAST_LINES)) {
            println!("{line}");
        }
    }
    let complaints = totals.complaints(scenario);
    for complaint in &complaints {
        println!("{}: {complaint}", scenario.name);
    }
    if complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn trace(scenario: &Scenario, seed: u64) -> ExitCode {
    let report = run_caught(scenario, seed, Record::Lines);
    for line in &report.lines {
        println!("{line}");
    }
    println!(
        "{} events, {:.3} s, hash {:016x}",
        report.events,
        report.ended.0 as f64 / 1e9,
        report.hash
    );
    match report.violation {
        Some(violation) => {
            println!("seed {seed}: {}: {}", violation.oracle, violation.what);
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}

fn parse(arguments: &[String]) -> Result<(Scenario, Order), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, order) = match words[..] {
        [name] => (name, Order::Seeds(0..1000)),
        [name, "--seeds", seeds] => (name, Order::Seeds(range(seeds)?)),
        [name, "--trace", seed] => (name, Order::Trace(number(seed)?)),
        _ => return Err("which scenario?".into()),
    };
    let mut all = worlds::ALL.iter().chain(worlds::members::MISTAKES);
    let scenario = all.find(|scenario| scenario.name == name);
    let scenario = scenario.ok_or_else(|| format!("there is no scenario {name:?}"))?;
    Ok((*scenario, order))
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let parts = text.split_once("..");
    let (from, to) = parts.ok_or_else(|| format!("seeds are FROM..TO, not {text:?}"))?;
    Ok(number(from)?..number(to)?)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a number"))
}
