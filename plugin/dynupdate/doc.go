// Package dynupdate serves a zone that clients change by signed UPDATE messages (RFC 2136, RFC 8945).
//
//	UPDATE ──ServeDNS──▶ message: who, which records ──▶ decision: prerequisites, permissions, prescan, updates
//	                                                        │ one after the other, on the version before
//	client ◀──answer, when it is durable──┐                 ▼
//	                                      └── store ──▶ next version, and what changed
//	                                            ├──▶ committer: many updates, one write, one sync ──▶ database
//	query ──▶ file.Link ──▶ the version that is durable
//	                                            └──▶ transfer: NOTIFY, IXFR
//
// Versions share what did not change (package zone, Change), so an update costs the same in a large zone as in a small
// one. The decision is pure: it sees a version and a message, and makes a change or none.
//
// Where to go:
//
//   - an update: dynupdate.go, update.go, passer.go (who passes it on), message.go, replays.go; decide.go and
//     apply.go with rules.go and options.go (who may); talk.go logs it, gauges.go tells figures.
//   - the store: store.go (what is durable), commit.go (many updates, one write), seed.go and takeover.go (how it
//     begins). What stands on disk is package database.
//   - who uses which store: registry.go, users.go, handover.go (another process), notify.go (secondaries).
//   - signatures: resign.go (when they are made anew). How is package signing.
//   - reverse zones: reverse.go (what an update of addresses does to them), follow.go (when).
//
// Any number of goroutines may use a DynUpdate. Start at DynUpdate.ServeDNS and decision.run.
package dynupdate
