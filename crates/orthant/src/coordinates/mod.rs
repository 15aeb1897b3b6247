//! Coordinates in which terms are solved: centred, scaled, and moved so that little is left of the cost.

mod frame;
mod gauge;
mod mean_cost;

pub(crate) use frame::{Frame, check_reach};
pub(crate) use gauge::{Gauge, Placed, second_moments};
pub use mean_cost::{cost_deviation, mean_cost, mean_squared_distance, squared_distance_deviation};
