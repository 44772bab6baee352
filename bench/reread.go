package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

const (
	rereadRate   = 3000 // queries a second
	rereadWithin = 2 * time.Minute
)

// rereadP99 gives the server its zone with another serial and one name more, and asks it in the same pace until it
// has that one, and a second longer. It returns p99 of the worst second, in milliseconds.
func rereadP99(b *bench, s *server, records int) (float64, error) {
	const added = "added." + smallOrigin
	names := records / 2
	list := flatQueries(smallOrigin, names, min(names, 100_000), rand.New(rand.NewPCG(b.seed, 1)))
	l := load{port: s.port, clients: 2, window: 64, rate: rereadRate, length: time.Second}
	l.queries = func(client int) source { return list.cursor(client, l.clients) }
	if err := writeNextZone(s.zone, names); err != nil {
		return 0, err
	}
	worst, last := time.Duration(0), false
	for begin := time.Now(); !last; {
		if time.Since(begin) > rereadWithin {
			return 0, fmt.Errorf("%s has not read its zone again within %v", s.name, rereadWithin)
		}
		last = ask(s.port, added) == answer
		t, _, err := l.run()
		if err != nil {
			return 0, err
		}
		if t.answered == 0 || t.wrong > 0 {
			return 0, fmt.Errorf("%d answers, %d of them wrong", t.answered, t.wrong)
		}
		worst = max(worst, quantile(t.waits, 0.99))
	}
	return float64(worst) / float64(time.Millisecond), nil
}

// writeNextZone puts a zone of so many names in the place of the one in path.
func writeNextZone(path string, names int) error {
	f, err := os.Create(path + ".next")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, nextApex, smallOrigin)
	if err = errors.Join(err, flatRecords(f, names), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".next", path)
}

// nextApex is apex with another serial and one name more.
const nextApex = `$ORIGIN %s.
$TTL 3600
@ IN SOA ns1 host 2026112102 7200 3600 1209600 300
@ IN NS ns1
ns1 IN A 192.0.2.53
added IN A 192.0.2.54
`
