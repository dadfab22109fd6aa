mod bed;
mod codec;
mod handing_over;
mod placement;
mod rules;
