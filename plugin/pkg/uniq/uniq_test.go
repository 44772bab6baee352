package uniq_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/uniq"
)

// note returns a function that writes name to b and returns err.
func note(b *strings.Builder, name string, err error) func() error {
	return func() error {
		b.WriteString(name)
		return err
	}
}

func TestForEachRunsOnce(t *testing.T) {
	var ran strings.Builder
	u := uniq.New()
	u.Set("a", note(&ran, "1", nil))
	u.Set("b", note(&ran, "2", nil))
	u.Set("a", note(&ran, "3", nil))
	for range 2 {
		if err := u.ForEach(); err != nil {
			t.Fatal(err)
		}
	}
	u.Set("a", note(&ran, "4", nil)) // it was run already
	u.Set("c", note(&ran, "5", nil))
	if err := u.ForEach(); err != nil {
		t.Fatal(err)
	}
	if got, want := ran.String(), "125"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
}

func TestUnset(t *testing.T) {
	var ran strings.Builder
	u := uniq.New()
	u.Set("a", note(&ran, "1", nil))
	u.Set("b", note(&ran, "2", nil))
	u.Unset("a")
	u.Unset("never set")
	_ = u.ForEach()
	u.Unset("b")
	u.Set("b", note(&ran, "3", nil))
	_ = u.ForEach()
	if got, want := ran.String(), "23"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
}

func TestForEachReturnsTheFirstError(t *testing.T) {
	var ran strings.Builder
	first, second := errors.New("first"), errors.New("second")
	u := uniq.New()
	u.Set("a", note(&ran, "1", nil))
	u.Set("b", note(&ran, "2", first))
	u.Set("c", note(&ran, "3", second))
	u.Set("d", note(&ran, "4", nil))
	if err := u.ForEach(); !errors.Is(err, first) {
		t.Errorf("got %v, want %v", err, first)
	}
	if err := u.ForEach(); err != nil {
		t.Errorf("again: got %v", err)
	}
	if got, want := ran.String(), "1234"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
}

func TestFunctionsMayChangeTheSet(t *testing.T) {
	var ran strings.Builder
	u := uniq.New()
	u.Set("a", func() error {
		ran.WriteString("1")
		u.Unset("b")
		u.Set("c", note(&ran, "3", nil))
		return nil
	})
	u.Set("b", note(&ran, "2", nil))
	_ = u.ForEach()
	ran.WriteString("|")
	_ = u.ForEach()
	if got, want := ran.String(), "1|3"; got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
}

func TestConcurrentUse(t *testing.T) {
	u := uniq.New()
	var ran atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			u.Set("a", func() error { ran.Add(1); return nil })
			_ = u.ForEach()
		})
	}
	wg.Wait()
	if got := ran.Load(); got != 1 {
		t.Errorf("ran %d times, want once", got)
	}
}
