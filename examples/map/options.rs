//! What the user may ask for.

use std::path::PathBuf;

use mizzen_examples::Result;
use mizzen_examples::options::number;

use super::tiles::Map;
use super::view::{MAX_SCALE, MIN_SCALE, View};

const USAGE: &str = "the options are --region X,Y,WIDTH,HEIGHT (of the map, in pixels; without one, all of it), and of that region \
                     --scale FACTOR and --output FILE.png; then another --region with its own";
/// Without a scale, a region is shown with at most so many pixels a side.
const WINDOW: f64 = 960.0;
/// What is shown if nothing is asked for: all of the map, and this.
const DETAIL: [u32; 4] = [2600, 2400, 1920, 1920];

/// The pictures to make.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) views: Vec<Asked>,
}

/// A picture, and where it goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) view: View,
    pub(crate) output: PathBuf,
}

/// A picture as far as it was asked for.
#[derive(Default)]
struct Wish {
    region: Option<[u32; 4]>,
    scale: Option<f64>,
    output: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>, map: Map) -> Result<Self> {
        let mut wishes: Vec<Wish> = Vec::new();
        while let Some(option) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or_else(|| format!("{option} needs a value; {USAGE}"))
            };
            match option.as_str() {
                "--region" => wishes.push(Wish {
                    region: Some(region(&value()?)?),
                    ..Wish::default()
                }),
                "--scale" => {
                    let scale = number(&option, &value()?, MIN_SCALE..=MAX_SCALE)?;
                    last(&mut wishes).scale = Some(scale);
                }
                "--output" => last(&mut wishes).output = Some(value()?.into()),
                _ => return Err(format!("there is no option {option:?}; {USAGE}").into()),
            }
        }
        if wishes.is_empty() {
            let region = Some(DETAIL);
            wishes = vec![
                Wish::default(),
                Wish {
                    region,
                    ..Wish::default()
                },
            ];
        }
        let views = wishes.into_iter().enumerate();
        let views = views.map(|(number, wish)| wish.fulfil(number, map));
        Ok(Self {
            views: views.collect::<Result<_>>()?,
        })
    }
}

impl Wish {
    fn fulfil(self, number: usize, map: Map) -> Result<Asked> {
        let [all_across, all_down] = map.size();
        let [x, y, width, height] = self.region.unwrap_or([0, 0, all_across, all_down]);
        let fitting = (WINDOW / f64::from(width.max(height).max(1))).clamp(MIN_SCALE, 1.0);
        let view = View {
            start: [x, y],
            length: [width, height],
            scale: self.scale.unwrap_or(fitting),
        };
        view.check(map)?;
        let name = match number {
            0 => "map.png".to_owned(),
            _ => format!("map-{}.png", number + 1),
        };
        Ok(Asked {
            view,
            output: self.output.unwrap_or_else(|| name.into()),
        })
    }
}

/// The wish that a scale or an output is of: the whole map, if no region was named before.
fn last(wishes: &mut Vec<Wish>) -> &mut Wish {
    if wishes.is_empty() {
        wishes.push(Wish::default());
    }
    wishes.last_mut().expect("there is one at least")
}

fn region(value: &str) -> Result<[u32; 4]> {
    let numbers: std::result::Result<Vec<u32>, _> = value.split(',').map(str::parse).collect();
    numbers
        .ok()
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| format!("--region needs X,Y,WIDTH,HEIGHT in pixels, not {value:?}").into())
}
