//! The rules of a session's numbers.
#![allow(clippy::unwrap_used)]

use super::*;

fn sessions() -> Sessions {
    Sessions::new(100, Duration::from_secs(60))
}

fn of(id: SessionId) -> Lsid {
    Lsid { id, uid: NOBODY }
}

fn out<'s>(sessions: &'s Sessions, id: &SessionId) -> CheckedOut<'s> {
    sessions.check_out(&of(*id), None, &Interrupt::default()).unwrap()
}

#[test]
fn numbers_only_go_up() {
    let sessions = sessions();
    let id = [1; 16];
    assert_eq!(out(&sessions, &id).retryable(1, false).unwrap(), Seen::First { many: false });
    assert_eq!(out(&sessions, &id).retryable(1, true).unwrap(), Seen::Again);
    assert_eq!(out(&sessions, &id).retryable(2, false).unwrap(), Seen::First { many: true });
    assert_eq!(out(&sessions, &id).retryable(1, false).unwrap_err().code(), Code::TransactionTooOld);
    assert_eq!(out(&sessions, &id).resume(1).err().unwrap().code(), Code::TransactionTooOld);
    assert_eq!(out(&sessions, &id).resume(2).err().unwrap().code(), Code::NoSuchTransaction);
    assert_eq!(out(&sessions, &id).resume(3).err().unwrap().code(), Code::NoSuchTransaction);
}

#[test]
fn what_the_store_remembers_is_known_after_a_restart() {
    let sessions = sessions();
    let (write, transaction) = ([1; 16], [2; 16]);
    sessions.restore(&[
        RememberedSession { session: write, txn_number: 5, committed: false },
        RememberedSession { session: transaction, txn_number: 7, committed: true },
    ]);
    assert_eq!(out(&sessions, &write).retryable(5, false).unwrap(), Seen::Again);
    assert!(matches!(out(&sessions, &transaction).ending(7).unwrap(), Ending::Committed));
    assert_eq!(out(&sessions, &transaction).resume(7).err().unwrap().code(), Code::TransactionCommitted);
}

#[test]
fn a_second_command_waits_for_the_first() {
    let sessions = sessions();
    let id = [1; 16];
    let first = out(&sessions, &id);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| drop(out(&sessions, &id)));
        std::thread::sleep(Duration::from_millis(30));
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap();
    });
    let _held = out(&sessions, &id);
    let interrupt = Interrupt::default();
    interrupt.raise(Code::MaxTimeMSExpired);
    assert_eq!(sessions.check_out(&of(id), None, &interrupt).err().unwrap().code(), Code::MaxTimeMSExpired);
}

#[test]
fn sessions_are_bounded_and_expire() {
    let sessions = Sessions::new(SHARDS, Duration::ZERO);
    let ids: Vec<SessionId> = (0..200u8).map(|i| [i; 16]).collect();
    let refused = ids.iter().filter(|id| sessions.touch(&of(**id), None).is_err()).count();
    assert!(refused >= 200 - SHARDS);
    assert!(sessions.expire().iter().all(|gone| !gone.wrote));
    assert!(sessions.is_empty());
    out(&sessions, &[1; 16]).retryable(1, false).unwrap();
    assert!(sessions.end(&of([1; 16])).unwrap().wrote);
    assert!(sessions.is_empty());
}

#[test]
fn uuids_are_written_in_groups() {
    let id = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    assert_eq!(uuid_text(&id), "00010203-0405-0607-0809-0a0b0c0d0e0f");
}

#[test]
fn the_same_id_of_two_users_is_two_sessions_also_after_a_restart() {
    let (before, after) = (sessions(), sessions());
    let id = [9; 16];
    let of_user = |name: &str| Lsid { id, uid: uid(name) };
    let (one, two) = (of_user("one@shop"), of_user("two@shop"));
    let check_out = |sessions: &Sessions, lsid: &Lsid| {
        sessions.check_out(lsid, None, &Interrupt::default()).unwrap().retryable(5, false)
    };
    assert_eq!(check_out(&before, &one).unwrap(), Seen::First { many: false });
    assert_eq!(check_out(&before, &two).unwrap(), Seen::First { many: false });
    assert_eq!(check_out(&before, &one).unwrap(), Seen::Again);
    after.restore(&[RememberedSession { session: one.key(), txn_number: 5, committed: false }]);
    assert_eq!(check_out(&after, &two).unwrap(), Seen::First { many: false });
    assert_eq!(check_out(&after, &of(id)).unwrap(), Seen::First { many: false });
    assert_eq!(check_out(&after, &one).unwrap(), Seen::Again);
    assert_eq!(after.list().len(), 3);
    assert!(after.end(&two).unwrap().wrote && after.end(&two).is_none());
    assert_eq!(after.list().len(), 2);
}
