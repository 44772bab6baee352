package store

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verdict is what the end of a request means for what is done next.
type verdict uint8

const (
	ended   verdict = iota // a watch ended as watches do: go on where it stopped
	broken                 // the connection broke: the same, and who cannot connect again has lost the API
	away                   // no answer, or none but "not now": try again, later and later
	refused                // the server will not do this: say so, and try again
	gap                    // changes may have been missed: read everything again
	noWatch                // what should be a watch is none: the same, but not too often
)

var (
	errSilent = errors.New("no sign of the end of what there is")
	errDead   = errors.New("no sign of life")
	errStuck  = errors.New("the list does not come to its end")
	errBack   = errors.New("the resource version went back")

	errNoProgress = errors.New("a page of the list says that it follows itself")
)

// judge decides what err means. request tells that it came instead of an answer.
func judge(err error, request bool) verdict {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return ended
	case errors.Is(err, client.ErrNoEvent):
		return noWatch
	case errors.Is(err, errBack):
		return gap
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), tooLargeVersion(err):
		return gap
	case errors.As(err, &status):
		if code := status.Status().Code; code == 429 || code >= 500 {
			return away
		}
		return refused
	case request:
		return away
	}
	return broken
}

// failing tells that the server is there, and fails in what it was asked for.
func failing(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && (status.ErrStatus.Code == http.StatusInternalServerError || status.ErrStatus.Code == http.StatusNotImplemented)
}

// tooLargeVersion tells that the server is behind what we know, perhaps because it was restored from a copy.
func tooLargeVersion(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

const (
	firstWait = 200 * time.Millisecond
	maxWait   = 10 * time.Second
	lastTry   = 6 // from which on the wait does not grow
)

// backoff says how long to wait before the next request.
type backoff struct{ tries int }

// next returns the wait: twice as long each time, up to maxWait, and up to half of that
// more, so that not all servers come at once. jitter is in [0, 1).
func (b *backoff) next(jitter float64) time.Duration {
	d := maxWait
	if b.tries < lastTry {
		d = min(firstWait<<b.tries, maxWait)
	}
	b.tries++
	return d + time.Duration(jitter*float64(d)/2)
}

func (b *backoff) reset() { b.tries = 0 }

// full makes the next wait a long one.
func (b *backoff) full() { b.tries = lastTry }

// asked returns how long a server that is busy wants to be left alone (Retry-After), within reason.
func asked(err error) time.Duration {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil {
		return 0
	}
	return min(time.Duration(status.ErrStatus.Details.RetryAfterSeconds)*time.Second, maxWait)
}

// watchTime returns for how long a watch is asked for: 5 to 10 minutes, so that they do not all end at once.
func watchTime() time.Duration {
	return 5*time.Minute + rand.N(5*time.Minute)
}

// wentBack tells that version a of a resource is before version b. Versions that are not numbers cannot be compared.
func wentBack(a, b string) bool {
	x, okX := number(a)
	y, okY := number(b)
	return okX && okY && x < y
}

func number(s string) (n uint64, ok bool) {
	if s == "" || len(s) > 19 {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}
