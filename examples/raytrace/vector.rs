//! Places, directions and colours: three numbers.

use core::ops::{Add, Mul, Neg, Sub};

/// To the right, up, towards the viewer; or red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vector(pub(crate) f64, pub(crate) f64, pub(crate) f64);

impl Vector {
    pub(crate) const ZERO: Self = Self(0.0, 0.0, 0.0);
    pub(crate) const ONE: Self = Self(1.0, 1.0, 1.0);
    pub(crate) const UP: Self = Self(0.0, 1.0, 0.0);

    pub(crate) fn dot(self, other: Self) -> f64 {
        self.0 * other.0 + self.1 * other.1 + self.2 * other.2
    }

    pub(crate) fn cross(self, other: Self) -> Self {
        Self(
            self.1 * other.2 - self.2 * other.1,
            self.2 * other.0 - self.0 * other.2,
            self.0 * other.1 - self.1 * other.0,
        )
    }

    pub(crate) fn length(self) -> f64 {
        self.dot(self).sqrt()
    }

    pub(crate) fn unit(self) -> Self {
        self * (1.0 / self.length())
    }

    /// Each number with that of the other: light on a colour.
    pub(crate) fn filter(self, other: Self) -> Self {
        Self(self.0 * other.0, self.1 * other.1, self.2 * other.2)
    }

    pub(crate) fn mix(self, other: Self, part: f64) -> Self {
        self * (1.0 - part) + other * part
    }

    /// No number above `most`.
    pub(crate) fn at_most(self, most: f64) -> Self {
        Self(self.0.min(most), self.1.min(most), self.2.min(most))
    }

    /// Two directions that are square to this one and to each other.
    pub(crate) fn sides(self) -> (Self, Self) {
        let away = if self.1.abs() < 0.9 {
            Self::UP
        } else {
            Self(1.0, 0.0, 0.0)
        };
        let side = away.cross(self).unit();
        (side, self.cross(side))
    }
}

impl Add for Vector {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1, self.2 + other.2)
    }
}

impl Sub for Vector {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0, self.1 - other.1, self.2 - other.2)
    }
}

impl Mul<f64> for Vector {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor, self.1 * factor, self.2 * factor)
    }
}

impl Neg for Vector {
    type Output = Self;
    fn neg(self) -> Self {
        self * -1.0
    }
}
