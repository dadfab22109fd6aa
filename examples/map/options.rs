//! What the user may ask for.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};
use mizzen_examples::Result;
use mizzen_examples::options::number;

use super::place::Map;
use super::view::{MAX_SCALE, MIN_SCALE, View};

/// Without a scale, a region is shown with at most so many pixels a side.
const WINDOW: f64 = 960.0;
/// What is shown if nothing is asked for: all of the map, and this.
const DETAIL: [u32; 4] = [2600, 2400, 1920, 1920];
/// Enough that a picture of a millisecond is made for seconds.
const MAX_REPEATS: u32 = 10_000;

/// A viewer of a huge map whose tiles are spread over all processes.
///
/// Each --region begins a picture; a --scale and an --output are of the region before them, or of the whole map if there is
/// none. Without options there are two pictures: the whole map, and a part of it.
#[derive(Debug, Parser)]
#[command(name = "map")]
struct Arguments {
    /// A part of the map to show, in pixels; may be repeated
    #[arg(long, value_name = "X,Y,WIDTH,HEIGHT", value_parser = region)]
    region: Vec<[u32; 4]>,
    /// Pixels of the picture for one of the map [default: so that it has at most 960 a side]
    #[arg(long, value_name = "FACTOR", value_parser = number(MIN_SCALE..=MAX_SCALE))]
    scale: Vec<f64>,
    /// The picture [default: map.png, then map-2.png and so on]
    #[arg(long, value_name = "FILE.png")]
    output: Vec<PathBuf>,
    /// How often to make each picture; if more than once, the time is the mean without the first
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = number(1..=MAX_REPEATS))]
    repeat: u32,
    /// Print the times for programs; a picture without --output is not written
    #[arg(long)]
    json: bool,
}

/// The pictures to make.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) views: Vec<Asked>,
    pub(crate) repeat: u32,
    pub(crate) json: bool,
}

/// A picture, and where it goes, if anywhere.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) view: View,
    pub(crate) output: Option<PathBuf>,
}

/// A picture as far as it was asked for.
#[derive(Default)]
struct Wish {
    region: Option<[u32; 4]>,
    scale: Option<f64>,
    output: Option<PathBuf>,
}

/// One option.
enum Word {
    Region([u32; 4]),
    Scale(f64),
    Output(PathBuf),
}

impl Options {
    /// What these arguments ask for; the first is the program's name.
    pub(crate) fn read(
        args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
        map: Map,
    ) -> Result<Self> {
        let matches = Arguments::command().try_get_matches_from(args)?;
        let mut wishes: Vec<Wish> = Vec::new();
        let arguments = Arguments::from_arg_matches(&matches)?;
        let (repeat, json) = (arguments.repeat, arguments.json);
        for word in in_order(arguments, &matches) {
            match word {
                Word::Region(region) => wishes.push(Wish {
                    region: Some(region),
                    ..Wish::default()
                }),
                Word::Scale(scale) => last(&mut wishes).scale = Some(scale),
                Word::Output(output) => last(&mut wishes).output = Some(output),
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
        let views = views.map(|(number, wish)| {
            let name = (!json).then(|| default_name(number));
            wish.fulfil(name, map)
        });
        Ok(Self {
            views: views.collect::<Result<_>>()?,
            repeat,
            json,
        })
    }
}

/// All options as the user wrote them, one after the other.
fn in_order(arguments: Arguments, matches: &ArgMatches) -> Vec<Word> {
    let Arguments {
        region,
        scale,
        output,
        ..
    } = arguments;
    let at = |name| matches.indices_of(name).into_iter().flatten();
    let mut words: Vec<(usize, Word)> = at("region")
        .zip(region.into_iter().map(Word::Region))
        .chain(at("scale").zip(scale.into_iter().map(Word::Scale)))
        .chain(at("output").zip(output.into_iter().map(Word::Output)))
        .collect();
    words.sort_by_key(|(index, _)| *index);
    words.into_iter().map(|(_, word)| word).collect()
}

/// The file of a picture whose file was not named.
fn default_name(number: usize) -> PathBuf {
    match number {
        0 => "map.png".into(),
        _ => format!("map-{}.png", number + 1).into(),
    }
}

impl Wish {
    fn fulfil(self, name: Option<PathBuf>, map: Map) -> Result<Asked> {
        let [all_across, all_down] = map.size();
        let [x, y, width, height] = self.region.unwrap_or([0, 0, all_across, all_down]);
        let fitting = (WINDOW / f64::from(width.max(height).max(1))).clamp(MIN_SCALE, 1.0);
        let view = View {
            start: [x, y],
            length: [width, height],
            scale: self.scale.unwrap_or(fitting),
        };
        view.check(map)?;
        Ok(Asked {
            view,
            output: self.output.or(name),
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

fn region(value: &str) -> std::result::Result<[u32; 4], &'static str> {
    let numbers: std::result::Result<Vec<u32>, _> = value.split(',').map(str::parse).collect();
    numbers
        .ok()
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or("not X,Y,WIDTH,HEIGHT in pixels")
}
