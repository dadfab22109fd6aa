mod bed;
mod codec;
mod handing_over;
mod lies;
mod placement;
mod rules;
