package store

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestJudge(t *testing.T) {
	gr := schema.GroupResource{Resource: "services"}
	for _, tc := range []struct {
		err     error
		request bool
		want    verdict
	}{
		{nil, false, ended},
		{io.EOF, false, ended},
		{io.ErrUnexpectedEOF, false, broken},
		{errors.New("connection refused"), true, away},
		{apierrors.NewForbidden(gr, "", nil), true, refused},
		{apierrors.NewResourceExpired("gone"), false, gap},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone, Code: 410}}, true, gap},
		{fmt.Errorf("around: %w", apierrors.NewTooManyRequests("later", 1)), true, away},
		{apierrors.NewInternalError(errors.New("x")), false, away},
		{errBack, false, gap},
		{fmt.Errorf("around: %w", client.ErrNoEvent), false, noWatch},
		{&requestError{"watch", "services", apierrors.NewNotFound(gr, "")}, true, refused},
	} {
		if got := judge(tc.err, tc.request); got != tc.want {
			t.Errorf("%v (request %v): %d, want %d", tc.err, tc.request, got, tc.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	want := []time.Duration{200, 400, 800, 1600, 3200, 6400, 10000, 10000}
	for i, ms := range want {
		d := ms * time.Millisecond
		if i == 7 {
			d += d / 4
			if got := b.next(0.5); got != d {
				t.Errorf("with jitter: %v, want %v", got, d)
			}
			continue
		}
		if got := b.next(0); got != d {
			t.Errorf("wait %d: %v, want %v", i, got, d)
		}
	}
	b.reset()
	if b.next(0) != firstWait {
		t.Error("reset does not start over")
	}
}

func TestWentBackCompares(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{{"9", "10", true}, {"10", "9", false}, {"10", "10", false}, {"", "10", false}, {"x", "10", false}, {"1", "", false}} {
		if got := wentBack(tc.a, tc.b); got != tc.want {
			t.Errorf("%q before %q: %v", tc.a, tc.b, got)
		}
	}
}
