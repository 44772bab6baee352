// Package zone holds one zone and answers: what stands at this name?
//
//	records ──Builder──▶ Zone ──Find──▶ Match{Kind, Node} ──Answerer──▶ wire.Reply
//	                      ├──Walk, Transfer──▶ records in order, for transfers out and digests
//	                      ├──Diff, Edit──────▶ what changed from version to version
//	                      └──Live────────────▶ the version that is served now; who must know is told of the next
//
// A Zone never changes once it is built; any number of goroutines may read it. It is a few blocks
// of memory without pointers in them: nodes with their RRsets packed, an index by name, and, made
// when first asked for, the canonical order (RFC 4034 §6.1). Each name between a name with data and the
// apex has a node, too: empty non-terminals exist (RFC 4592 §2.2.2).
//
// A zone that was signed before it was read is answered with its signatures and proofs: signatures stand
// behind the RRset that they cover, nodes with NSEC records are in a chain in canonical order, and NSEC3
// records, if the Builder was told to take them, in one of their own, for their owners are not names of the zone.
//
// Where to go:
//
//   - answer a query: Answerer.Answer, the state machine of RFC 1034 §4.3.2; proof.go and nsec3.go prove denials.
//   - read a zone in: NewBuilder, Add for each record in wire form (AddRR for dns.RR), Build.
//   - send a zone out: Zone.Transfer and Walk.Fill, message by message; Zone.Walk for canonical order.
//   - keep a journal: Diff makes a Delta, Journal keeps some, Zone.Increment is the transfer of what they say,
//     Edit.Apply makes the next version of one.
//   - change single records of a large zone: Zone.Growing, Change; grown.go tells what versions share.
//   - be told of new versions: Live.OnReplace.
//   - get a zone from a primary: package fetch, whose stream.go builds versions out of transfers.
//   - ZONEMD: Zone.Digest and Zone.VerifyDigest.
//
// And in the files:
//
//   - records come in: build.go, same.go, even.go (TTLs), form.go and service.go (is RDATA whole?), rdata.go,
//     rr.go; encode.go makes the Zone of them, and release.go lets go of memory meanwhile.
//   - it lies in memory: node.go, arena.go, order.go; of a growing zone in rows.go, pages.go, branch.go.
//   - it answers: answer.go, alias.go, write.go, proof.go, nsec3.go; ahead.go has large ones read ahead.
//   - it goes out: record.go, walk.go, diff.go, journal.go, text.go (a master file), digest.go.
//   - it changes: edit.go; change.go with site.go, appear.go (other names), hashes.go (NSEC3), neighbours.go,
//     sweep.go, lineage.go (what a version was made of), live.go.
//
// Names are wire form in lower case. The package knows nothing of sockets, files or clocks, and of messages of
// other libraries only in rr.go. Start at Zone.Find.
package zone
