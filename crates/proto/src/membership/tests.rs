mod bed;
mod frames;
mod prrte;
mod rules;
