package proxy

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/replies"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"
)

// TestHostileReplies looks at what came, and hands it to a client with letters of another case and without what
// concerns neighbours only.
func TestHostileReplies(t *testing.T) {
	b := make([]byte, 0, wire.MaxMessage)
	wiretest.Compare(t, 15, func(t *testing.T, r *wiretest.Reply) {
		b = append(b[:0], r.Message...)
		in, v := replies.Inspect(b)
		if v != replies.Proper {
			return
		}
		new(replies.Flips).UndoReply(b, r.Query())
		in.WithoutHopByHop(b)
	})
}
