package doq

import (
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
)

var _ exec.QueryWriter = new(Writer)

// A Writer that somebody else has made has no stream, and says so.
func TestWriterWithoutStream(t *testing.T) {
	w := new(Writer)
	for what, err := range map[string]error{"WriteMsg": w.WriteMsg(coretest.Query("www.")), "Close": w.Close()} {
		if err == nil || err.Error() != "stream is nil" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := w.Write(nil); err == nil || err.Error() != "stream is nil" {
		t.Errorf("got %v", err)
	}
	if w.Msg == nil || w.TsigStatus() != nil || w.Network() != "" || w.ConnectionState() != nil {
		t.Errorf("got %v", w)
	}
	if w.RemoteAddr() != nil || w.LocalAddr() != nil {
		t.Errorf("from %v to %v", w.RemoteAddr(), w.LocalAddr())
	}
	w.Hijack()
}
