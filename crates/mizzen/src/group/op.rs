//! How members' data are combined.

use core::ops::{Add, BitAnd, BitOr, BitXor, Mul};

/// How the data of members are combined: element by element.
///
/// [`Sum`], [`Product`], [`Min`], [`Max`], [`And`], [`Or`] and [`Xor`] are there; [`commutative`] and [`ordered`] make one of a function.
///
/// ```
/// use mizzen::group::{Max, Sum};
///
/// mizzen::local(3, |deck| {
///     let mut group = deck.group()?;
///     assert_eq!(group.all_reduce_value(deck.rank().0, Sum)?, 0 + 1 + 2);
///     let mut data = [deck.rank().0 as f64, 1.5];
///     group.all_reduce(&mut data, Max)?;
///     assert_eq!(data, [2.0, 1.5]);
///     Ok(())
/// }).unwrap();
/// ```
pub trait Op<T>: Copy {
    /// Whether members' data may be combined in any order. Otherwise they are combined in that of the members.
    const COMMUTES: bool;

    /// Combines `next` into `data`, where `data` stands before `next`. Both are as long.
    fn combine(self, data: &mut [T], next: &[T]);
}

/// The sum.
#[derive(Clone, Copy, Debug)]
pub struct Sum;
/// The product.
#[derive(Clone, Copy, Debug)]
pub struct Product;
/// The least. Of floating-point numbers, whatever is not a number counts for nothing.
#[derive(Clone, Copy, Debug)]
pub struct Min;
/// The greatest. Of floating-point numbers, whatever is not a number counts for nothing.
#[derive(Clone, Copy, Debug)]
pub struct Max;
/// The bits that all have.
#[derive(Clone, Copy, Debug)]
pub struct And;
/// The bits that any has.
#[derive(Clone, Copy, Debug)]
pub struct Or;
/// The bits that an odd number have.
#[derive(Clone, Copy, Debug)]
pub struct Xor;

/// A number that has a least and a greatest.
pub trait Number: Copy + Add<Output = Self> + Mul<Output = Self> {
    /// The lesser.
    #[must_use]
    fn least(self, other: Self) -> Self;
    /// The greater.
    #[must_use]
    fn greatest(self, other: Self) -> Self;
    /// The sum, which wraps round where the type cannot hold it.
    #[must_use]
    fn sum(self, other: Self) -> Self;
    /// The product, which wraps round where the type cannot hold it.
    #[must_use]
    fn product(self, other: Self) -> Self;
}

/// Numbers of these types, which are added and multiplied by these methods.
macro_rules! numbers {
    ($sum:ident, $product:ident: $($number:ty)*) => {$(
        impl Number for $number {
            #[inline]
            fn least(self, other: Self) -> Self {
                self.min(other)
            }

            #[inline]
            fn greatest(self, other: Self) -> Self {
                self.max(other)
            }

            #[inline]
            fn sum(self, other: Self) -> Self {
                self.$sum(other)
            }

            #[inline]
            fn product(self, other: Self) -> Self {
                self.$product(other)
            }
        }
    )*};
}

numbers!(wrapping_add, wrapping_mul: u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
numbers!(add, mul: f32 f64);

macro_rules! ops {
    ($($op:ident, $bound:path, $combine:expr;)*) => {$(
        impl<T: Copy + $bound> Op<T> for $op {
            const COMMUTES: bool = true;

            #[inline]
            fn combine(self, data: &mut [T], next: &[T]) {
                for (value, next) in data.iter_mut().zip(next) {
                    *value = $combine(*value, *next);
                }
            }
        }
    )*};
}

ops! {
    Sum, Number, T::sum;
    Product, Number, T::product;
    Min, Number, T::least;
    Max, Number, T::greatest;
    And, BitAnd<Output = T>, T::bitand;
    Or, BitOr<Output = T>, T::bitor;
    Xor, BitXor<Output = T>, T::bitxor;
}

/// An operation made of a function that combines the second value into the first, and for which the order is all the same.
///
/// ```
/// use mizzen::group::commutative;
///
/// mizzen::local(3, |deck| {
///     // The greatest common divisor.
///     let gcd = commutative(|a: &mut u64, b: &u64| {
///         let (mut x, mut y) = (*a, *b);
///         while y > 0 {
///             (x, y) = (y, x % y);
///         }
///         *a = x;
///     });
///     let value = 12 * (u64::from(deck.rank()) + 1);
///     assert_eq!(deck.group()?.all_reduce_value(value, gcd)?, 12);
///     Ok(())
/// }).unwrap();
/// ```
pub fn commutative<T, F: Fn(&mut T, &T) + Copy>(combine: F) -> impl Op<T> {
    Made::<F, true>(combine)
}

/// The same where the order matters: values are combined in the order of the members.
///
/// ```
/// use mizzen::group::ordered;
///
/// mizzen::local(3, |deck| {
///     // The digits of all ranks, one after the other.
///     let digits = ordered(|a: &mut u32, b: &u32| *a = 10 * *a + *b);
///     assert_eq!(deck.group()?.all_reduce_value(deck.rank().0 + 1, digits)?, 123);
///     Ok(())
/// }).unwrap();
/// ```
pub fn ordered<T, F: Fn(&mut T, &T) + Copy>(combine: F) -> impl Op<T> {
    Made::<F, false>(combine)
}

#[derive(Clone, Copy)]
struct Made<F, const COMMUTES: bool>(F);

impl<T, F: Fn(&mut T, &T) + Copy, const COMMUTES: bool> Op<T> for Made<F, COMMUTES> {
    const COMMUTES: bool = COMMUTES;

    #[inline]
    fn combine(self, data: &mut [T], next: &[T]) {
        for (value, next) in data.iter_mut().zip(next) {
            (self.0)(value, next);
        }
    }
}
