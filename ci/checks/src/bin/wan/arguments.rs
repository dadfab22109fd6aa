//! What the network is to be like, in words.

use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::way::Weather;

pub(crate) struct Arguments {
    pub(crate) weather: Weather,
    pub(crate) seed: u64,
    pub(crate) late: Duration,
}

impl Arguments {
    pub(crate) fn read(words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut weather = Weather::default();
        let (mut seed, mut late) = (1, Duration::from_millis(5));
        for word in words {
            let (key, value) = word
                .split_once('=')
                .with_context(|| format!("`{word}` is not KEY=VALUE"))?;
            let number = || {
                let number: f64 = value.parse().with_context(|| format!("reading {word}"))?;
                ensure!(number >= 0.0 && number.is_finite(), "{word} is less than 0");
                Ok(number)
            };
            let time = || Ok::<_, anyhow::Error>(Duration::from_secs_f64(number()? / 1e3));
            let part = || {
                let part = number()?;
                ensure!(part <= 1.0, "{word} is more than all");
                Ok::<_, anyhow::Error>(part)
            };
            match key {
                "delay" => weather.delay = time()?,
                "jitter" => weather.jitter = time()?,
                "loss" => weather.loss = part()?,
                "reorder" => weather.reorder = part()?,
                "duplicate" => weather.duplicate = part()?,
                "corrupt" => weather.corrupt = part()?,
                "seed" => seed = value.parse()?,
                "late" => late = time()?,
                _ => bail!("there is no `{key}`"),
            }
        }
        Ok(Self {
            weather,
            seed,
            late,
        })
    }
}
