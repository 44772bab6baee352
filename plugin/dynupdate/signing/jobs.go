package signing

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"

	"github.com/miekg/dns"
)

// This file makes the signatures of a version: RRset by RRset, on all processors where there are many.

// job is an RRset that is to be signed.
type job struct {
	site *zone.Site
	typ  uint16
	set  []dns.RR
	sigs []dns.RR
}

const (
	fewJobs  = 16   // up to so many one goroutine does, which is what an update takes
	jobBatch = 1024 // whose records are in memory as messages have them, which takes a kilobyte each
)

// sign does the jobs, on all processors if there are many.
func (s *signing) sign() error {
	for batch := range slices.Chunk(s.jobs, jobBatch) {
		if err := s.signBatch(batch); err != nil {
			return err
		}
		clear(batch)
	}
	return nil
}

func (s *signing) signBatch(jobs []job) error {
	for i := range jobs {
		if err := jobs[i].read(); err != nil {
			return err
		}
	}
	workers := 1
	if len(jobs) > fewJobs {
		workers = runtime.GOMAXPROCS(0)
	}
	if err := zonekeys.Each(context.Background(), len(jobs), workers, func(i int) error { return s.do(&jobs[i]) }); err != nil {
		return err
	}
	for i := range jobs {
		var sigs [][]byte
		for _, sig := range jobs[i].sigs {
			rdata, err := zone.RDataOf(sig)
			if err != nil {
				return err
			}
			sigs = append(sigs, rdata)
		}
		if err := jobs[i].site.Sign(jobs[i].typ, sigs); err != nil {
			return err
		}
	}
	return nil
}

// read fetches the records of a job.
func (j *job) read() error {
	owner, ttl := j.site.Name(), j.site.TTL(j.typ)
	for rdata := range j.site.RDatas(j.typ) {
		rr, err := zone.Record{Owner: owner, Type: j.typ, TTL: ttl, RData: rdata}.RR()
		if err != nil {
			return err
		}
		j.set = append(j.set, rr)
	}
	return nil
}

// do makes the signatures of a job.
func (s *signing) do(j *job) (err error) {
	j.sigs, err = zonekeys.Sign(s.keys, wire.Text(s.origin), j.set, j.set[0].Header().Ttl, zonekeys.Span{
		Inception: s.now.Add(-backdated), Expiration: s.now.Add(validity + rand.N(mostJitter)),
	})
	return err
}
