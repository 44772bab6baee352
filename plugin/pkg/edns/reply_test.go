package edns_test

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/edns"
)

func TestReplySize(t *testing.T) {
	for asked, want := range map[uint16]uint16{0: 512, 100: 512, 512: 512, 1000: 1000, 1232: 1232, 1233: 1232, 65535: 1232} {
		if got := edns.ReplySize(asked); got != want {
			t.Errorf("%d: got %d, want %d", asked, got, want)
		}
	}
}
