package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// writeTable prints the rows of one workload. Times of responses are printed of paced
// load only: at full speed they tell the window, not the server.
func writeTable(w io.Writer, title string, rows []row, paced bool) error {
	fmt.Fprintf(w, "\n%s\n", title)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "server\tQPS\tCPU s/Mq best\tmedian\tlost\twrong\tRSS MiB\tready s\t")
	if paced {
		fmt.Fprint(t, "p50 us\tp99 us\t")
	}
	fmt.Fprintln(t, " answers")
	for _, r := range rows {
		var (
			qps, cpu []float64
			all      tally
		)
		for _, m := range r.rounds {
			qps, cpu = append(qps, m.qps()), append(cpu, m.perMillion())
			all.add(&m.tally)
		}
		best := 0.0
		if len(cpu) > 0 {
			best = slices.Min(cpu)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.2f\t%d\t%d\t%.0f\t%.2f\t", r.name, median(qps), best, median(cpu),
			all.lost, all.wrong, float64(r.memory)/(1<<20), r.ready.Seconds())
		if paced {
			fmt.Fprintf(t, "%.0f\t%.0f\t", micro(quantile(all.waits, 0.5)), micro(quantile(all.waits, 0.99)))
		}
		fmt.Fprintf(t, " %s\n", all.shares())
	}
	return t.Flush()
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
