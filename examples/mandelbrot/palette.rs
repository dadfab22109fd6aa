//! Colours: from night blue through white and amber back to night, again and again, slower the longer a point takes.

/// Where in a turn of the palette each colour is (red, green, blue from 0 to 1, in linear light).
const STOPS: [(f64, [f64; 3]); 6] = [
    (0.00, [0.000, 0.004, 0.070]),
    (0.20, [0.010, 0.140, 0.560]),
    (0.44, [0.850, 1.000, 1.000]),
    (0.64, [1.000, 0.400, 0.000]),
    (0.86, [0.060, 0.000, 0.030]),
    (1.00, [0.000, 0.004, 0.070]),
];
const INSIDE: [f64; 3] = [0.0, 0.0, 0.004];
/// Turns of the palette for each doubling of the steps, and where the first begins.
const TURNS: f64 = 0.23;
const START: f64 = 0.47;

/// The colour, in linear light, of a point that escaped after so many steps.
pub(crate) fn colour(steps: Option<f64>) -> [f64; 3] {
    let Some(steps) = steps else { return INSIDE };
    let turn = (steps.max(0.0) + 2.0).log2() * TURNS + START;
    let at = turn.fract();
    let after = STOPS.iter().position(|(stop, _)| *stop > at).unwrap_or(1);
    let ((from, before), (to, after)) = (STOPS[after - 1], STOPS[after]);
    let part = (at - from) / (to - from);
    // Ease in and out, so that no stop shows as an edge.
    let part = part * part * (3.0 - 2.0 * part);
    core::array::from_fn(|i| before[i] + (after[i] - before[i]) * part)
}

/// Linear light as a byte of a picture, which screens expect to be brighter in the dark.
pub(crate) fn to_byte(light: f64) -> u8 {
    let shown = if light <= 0.003_130_8 {
        12.92 * light
    } else {
        1.055 * light.powf(1.0 / 2.4) - 0.055
    };
    (255.0 * shown.clamp(0.0, 1.0)).round() as u8
}
