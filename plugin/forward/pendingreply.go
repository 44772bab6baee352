package forward

import (
	"encoding/binary"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// pendingReply is what queries of the wire lane are parked on, and what came of it: once it is over it does not change as long as anybody
// knows it, and any number of queries may read it. An asyncRun does its work.
type pendingReply struct {
	forward *Forward
	before  eventloop.Exchange // what the query had been parked on before, such as another forward's pendingReply

	question []byte // as it was sent
	scratch  [pendingScratch]byte

	do    actionKind // the last action of the course
	reply []byte     // answer
	rcode int        // fail, giveWay
	err   error      // fail, giveWay

	eventloop.Ending // the last ones are settled
}

// pendingScratch is the octets in which most questions fit with their replies.
const pendingScratch = 160

// pendingReplyOf is the pendingReply of q that has been begun by f, nil if none has.
func (f *Forward) pendingReplyOf(q *wire.Query) *pendingReply {
	for x := q.Awaited(); x != nil; {
		r, ok := x.(*pendingReply)
		if !ok {
			return nil
		}
		if r.forward == f && r.asks(q) {
			return r
		}
		x = r.before
	}
	return nil
}

// asks reports whether r has q's question.
func (r *pendingReply) asks(q *wire.Query) bool {
	end := len(q.Name())
	return len(r.question) == end+4 && wire.EqualFold(r.question[:end], q.Name()) &&
		binary.BigEndian.Uint16(r.question[end:]) == q.Type() && binary.BigEndian.Uint16(r.question[end+2:]) == q.Class()
}

// newPendingReply begins the course of q.
func (f *Forward) newPendingReply(q *wire.Query) *pendingReply {
	e := f.newAsyncRun(q)
	r := e.pending
	r.forward, r.before = f, q.Awaited()
	r.question = append(r.scratch[:0], e.query[wire.HeaderLen:wire.HeaderLen+len(q.Name())+4]...)
	e.proceed(event{kind: begun}, q.Loop())
	return r
}

// settle says what came of it all, and resumes those that wait for it. reply is not kept. It reports whether nobody knows the
// pendingReply any more.
func (r *pendingReply) settle(a action, reply []byte, err error, loop *eventloop.Loop) (done bool) {
	r.do, r.rcode, r.err = a.do, a.rcode, err
	if a.do == answer {
		r.reply = append(r.question[len(r.question):], reply...)
	}
	return r.EndIn(loop)
}

// anew makes a pendingReply that nobody knows one that has not been begun.
func (r *pendingReply) anew() {
	r.Anew()
	r.forward, r.before, r.question, r.reply, r.err = nil, nil, nil, nil, nil
}
