//! One test or more for each defect that was found in use, named by its number: `defect_t3_..`.

mod defects {
    mod trust_resize;
}
