package proxy

import "github.com/coredns/coredns/plugin/pkg/wire"

// opcodeBits are those of the opcode, in its octet of the header. Queries to a Peer have none of them set.
const opcodeBits = 0x78

// mismatch is what makes b, which is in and of verdict v up to bare, no reply to x, and proper if nothing does. What is cut short has
// lost its cookie; it only makes the client ask over TCP. What is bare has no question, nor letters. The engine's lock
// is held.
func (x *Exchange) mismatch(in *incoming, b []byte, v verdict) verdict {
	if x.To != nil && b[2]&opcodeBits != 0 {
		return notReply
	}
	if v != bare && !in.answers(b, x.Query) {
		return otherQuestion
	}
	if v != bare && x.flips != nil && string(b[wire.HeaderLen:in.qend]) != string(x.Query[wire.HeaderLen:in.qend]) {
		x.Doubted++
		x.Folded = true
		return otherCase
	}
	if x.shown != nil && v != cutShort && !x.proxy.cookiesOf(x).known(x, b, int(in.opt)) {
		x.shown.spurned = true
		x.Doubted++
		return otherCookie
	}
	return proper
}
