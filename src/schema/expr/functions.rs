//! stub
use super::ast::{Expr, Unknown};
use crate::schema::name::Name;
/// f
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// x
    Abs,
}
impl Function {
    /// x
    #[must_use]
    pub fn call(name: &Name, args: Vec<Expr>) -> Expr {
        let _ = args;
        Expr::Unknown(Unknown::Function(name.clone()))
    }
}
