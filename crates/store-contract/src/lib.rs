//! What the server and the patterns rely on whatever keeps the documents: one test each, on any [`Store`].
//!
//! A store passes if [`contract!`] passes with a function that makes an empty one. The tests know nothing but the seam: an
//! engine in a folder, one in memory, a layer on another store and a cluster behind a driver are all the same to them.
#![allow(clippy::unwrap_used)]

pub mod amend;
pub mod catalog;
pub mod durability;
pub mod feeds;
pub mod isolation;
pub mod layers;
pub mod retry;
pub mod support;
pub mod unique;
pub mod writes;

pub use espalier_store::Store;

/// A test for each part of the contract, on the stores that `$make` makes.
#[macro_export]
macro_rules! contract {
    ($make:expr) => {
        $crate::contract! { $make;
            amend: [nobody_s_amendment_is_lost, an_amendment_may_be_declined, an_amendment_is_told_as_it_says,
                    an_amendment_belongs_to_its_transaction, an_amendment_may_take_the_document_beside_along],
            catalog: [collections_come_and_go, a_rename_takes_documents_and_indexes_along,
                      others_follow_a_rename_in_its_commit,
                      options_are_replaced_as_a_whole,
                      options_of_several_are_replaced_in_one_commit,
                      a_default_collation_is_the_one_that_was_parsed_with, a_missing_namespace_reads_as_empty],
            durability: [tokens_follow_the_order_of_commits, what_was_not_committed_has_not_happened],
            feeds: [every_change_is_told_once_and_in_order, a_feed_goes_on_from_a_stamp, silence_is_for_announcements],
            isolation: [a_snapshot_does_not_move, own_writes_are_seen_by_their_transaction_alone,
                        the_second_writer_of_a_document_conflicts, a_single_write_never_conflicts,
                        cursors_outlive_their_transaction, readers_see_what_the_transaction_sees,
                        a_snapshot_can_be_had_again_by_its_time],
            layers: [a_layer_belongs_to_the_snapshot, writes_before_a_change_of_options_settle,
                     a_change_of_options_ends_a_transaction_that_wrote],
            retry: [what_came_of_a_statement_is_remembered_with_it, an_aborted_statement_is_forgotten],
            unique: [a_key_is_taken_once, a_key_is_free_again_after_a_delete, duplicates_refuse_an_index],
            writes: [changes_are_handed_out, an_ordered_insert_stops_at_the_first_error, an_upsert_makes_one_document,
                     a_write_sees_the_writes_before_it, images_are_those_before_and_after, documents_are_deleted_by_their_ids],
        }
    };
    ($make:expr; $($area:ident: [$($case:ident),* $(,)?]),* $(,)?) => {
        $(mod $area {
            use super::*;
            $(
                #[test]
                fn $case() {
                    let store = $make();
                    $crate::$area::$case(&*store);
                }
            )*
        })*
    };
}
