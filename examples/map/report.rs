//! What is said of a picture.

use mizzen::Deck;
use mizzen_examples::picture::fingerprint;

use super::options::Asked;
use super::view::View;
use super::viewer::Cost;

/// What it took.
pub(crate) fn for_people(asked: &Asked, cost: &Cost) -> String {
    match &asked.output {
        Some(file) => format!("{}: {}, {cost}", file.display(), asked.view),
        None => format!("{}, {cost}", asked.view),
    }
}

/// How long it took, and what tells two pictures apart.
pub(crate) fn for_programs(deck: &Deck, view: &View, cost: &Cost, pixels: &[u8]) -> String {
    let ([x, y], [width, height]) = (view.start, view.length);
    format!(
        "{{\"region\":[{x},{y},{width},{height}],\"scale\":{},\"tiles\":{},\"ranks\":{},\"seconds\":{},\
         \"fingerprint\":\"{:016x}\"}}",
        view.scale,
        cost.tiles,
        deck.size(),
        cost.took.as_secs_f64(),
        fingerprint(pixels)
    )
}
