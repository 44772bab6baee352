package proxy

// Many servers take the queries of a connection in turn: what waits for a resolver of theirs holds those behind it,
// which four connections do not make up for. Such an upstream is known by replies that never overtake each other,
// and come long after the one before though they were asked with it. It gets more connections, twice as many each
// time, as long as queries wait in that way, and it answers on them.

const (
	turnGap     = 10_000000 // ns that a reply comes after the one before it, at least
	turnsEnough = 8         // such replies, if their gaps are as long together as that took
	turnsPause  = 1_000000000
	maxWidth    = 252 // connections beside maxStreams
)

// turns is what a pool knows of that. The engine's lock is held.
type turns struct {
	width int   // connections that there may be beside maxStreams
	seen  int   // replies that came in turn
	began int64 // when the wait for the first of them did
	held  int64 // how long they came after those before them, together
	quick int64 // what the quickest reply took
	full  int64 // until when there are no more, as one brought nothing
}

// note takes note that x is answered on c, which was last heard of at before.
func (t *turns) note(c *streamConn, x *Exchange, before, now int64) {
	if c.to != nil || !c.open {
		return
	}
	took := now - x.sent
	if t.quick == 0 || took < t.quick {
		t.quick = took
	}
	gap := now - before
	switch {
	case x.sent < c.newest: // it was overtaken
		t.width, t.seen = 0, 0
	case c.newest > 0 && x.sent < before && took >= 2*t.quick && gap >= turnGap && gap > 2*(x.sent-c.newest):
		if t.seen == 0 || now-t.began > t.held+turnsPause {
			t.seen, t.began, t.held = 0, before, 0
		}
		t.seen, t.held = t.seen+1, t.held+gap
		if t.seen >= turnsEnough && t.held >= now-t.began && now >= t.full {
			t.seen, t.width = 0, min(2*t.width+maxStreams, maxWidth)
		}
	}
	c.newest = max(c.newest, x.sent)
}

// tooMany notes that a connection brought nothing: the upstream may not take so many.
func (t *turns) tooMany(now int64) {
	if t.width > 0 {
		t.width, t.full = t.width/2, now+singleFor
	}
}
