package proxy

// Many servers take the queries of a connection in turn: what waits for a resolver of theirs holds those behind it,
// which four connections do not make up for. Such an upstream is known by replies that never overtake each other,
// and come long after the one before though they were asked with it. It gets more connections, twice as many each
// time, as long as queries wait in that way, and it answers on them.

const (
	turnGap     = 10_000000 // ns that a reply comes after the one before it, at least
	turnsEnough = 8         // such replies, each on a connection on which queries do little else than wait
	turnsPause  = 1_000000000
	maxWidth    = 252 // connections beside maxStreams
)

// turns is what a pool knows of that. The engine's lock is held.
type turns struct {
	width int   // connections that there may be beside maxStreams
	seen  int   // replies that came in turn
	last  int64 // when the last of these did
	heard int64 // when the last reply came
	most  int   // connections at one time that had brought a reply
	quick int64 // what the quickest reply took
	full  int64 // until when there are no more, as one brought nothing; 0 if none ever did
}

// waits is what a connection knows of that. The engine's lock is held.
type waits struct {
	newest int64 // when the latest of the queries was sent that have been answered
	began  int64 // when the wait for the first reply did that came in turn
	held   int64 // how long such replies came after those before them, together
}

// more notes one more such reply, which came gap after the one before it. It reports whether those waits are most of
// the time by now. One alone tells nothing: an upstream that stands still, or a lost packet, has all connections wait
// at the same time, and more of them bring nothing.
func (w *waits) more(gap, now int64) bool {
	if w.held == 0 || now-w.began > w.held+turnsPause {
		w.began, w.held = now-gap, gap
		return false
	}
	w.held += gap
	return 4*w.held >= 3*(now-w.began)
}

// note takes note that x is answered on c, which was last heard of at before.
func (t *turns) note(c *streamConn, x *Exchange, before, now int64) {
	if c.to != nil || !c.open {
		return
	}
	t.heard = now
	took := now - x.sent
	if t.quick == 0 || took < t.quick {
		t.quick = took
	}
	gap := now - before
	switch {
	case x.sent < c.newest: // it was overtaken
		t.width, t.seen = 0, 0
	case c.newest > 0 && x.sent < before && took >= 2*t.quick && gap >= turnGap && gap > 2*(x.sent-c.newest):
		if !c.more(gap, now) {
			break
		}
		if now-t.last > gap+turnsPause {
			t.seen = 0
		}
		t.last = now
		if t.seen++; t.seen >= turnsEnough && now >= t.full {
			t.seen, t.width = 0, min(2*t.width+maxStreams, maxWidth)
		}
	}
	c.newest = max(c.newest, x.sent)
}

// tooMany notes that x was in vain on c. If c brought nothing at all, and others did meanwhile, the upstream does not
// take so many connections: there are as many as it answered on at one time, of late.
func (t *turns) tooMany(c *streamConn, x *Exchange, now int64) {
	if c.answered > 0 || t.width == 0 || t.heard <= x.sent {
		return
	}
	if now >= t.full {
		if t.full > 0 { // it may take fewer by now
			t.most -= t.most / 8
		}
		t.full = now + singleFor
	}
	t.width = min(t.width, max(t.most-maxStreams, 0))
}
