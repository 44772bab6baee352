package proxy

import (
	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// opcodeBits are those of the opcode, in its octet of the header. Queries to a Peer have none of them set.
const opcodeBits = 0x78

// mismatch is what makes b, which is in and of verdict v up to Bare, no reply to x, and Proper if nothing does. What is
// cut short has lost its cookie; it only makes the client ask over TCP. What is bare has no question, nor letters. The
// engine's lock is held.
func (x *Exchange) mismatch(in *replies.Incoming, b []byte, v replies.Verdict) replies.Verdict {
	if x.To != nil && b[2]&opcodeBits != 0 {
		return replies.NotReply
	}
	if v != replies.Bare && !in.IsFor(b, x.Query) {
		return replies.OtherQuestion
	}
	if v != replies.Bare && x.flips != nil && string(b[wire.HeaderLen:in.QuestionEnd]) != string(x.Query[wire.HeaderLen:in.QuestionEnd]) {
		x.Doubted++
		x.Folded = true
		return replies.OtherCase
	}
	if x.shown != nil && v != replies.CutShort && !x.proxy.cookiesOf(x).known(x, b, int(in.OPT)) {
		x.shown.spurned = true
		x.Doubted++
		return replies.OtherCookie
	}
	return replies.Proper
}
