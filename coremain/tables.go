package coremain

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"
)

// table prints rows below a head, in columns.
func table(out io.Writer, head string, rows [][]any) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(strings.Fields(head), "\t"))
	for _, row := range rows {
		for i, v := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, v)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// read decodes a reply.
func read[T any](reply []byte) (v T, err error) {
	err = json.Unmarshal(reply, &v)
	return v, err
}

// ago is how long ago t was, "-" if that is not known; until is how long it is until then.
func ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return span(time.Since(t))
}

func until(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return span(time.Until(t))
}

// span is a length of time in a form that is short.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d <= -time.Second:
		return "-" + span(-d)
	}
	return d.Round(time.Millisecond).String()
}

// clock is the time of day of a time as JSON has it.
func clock(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.Local().Format("15:04:05.000")
}

// octets is a size in a form that is short.
func octets(n int64) string {
	const units = "KMGT"
	if n < 1024 {
		return fmt.Sprint(n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// showText prints a text; showValue prints a member of the reply.
func showText(text string) func(io.Writer, []byte) error {
	return func(out io.Writer, _ []byte) error {
		_, err := io.WriteString(out, text)
		return err
	}
}

func showValue(format, member string) func(io.Writer, []byte) error {
	return func(out io.Writer, reply []byte) error {
		v, err := read[map[string]any](reply)
		if err == nil {
			_, err = fmt.Fprintf(out, format, v[member])
		}
		return err
	}
}

// showRaw prints the reply as it is.
func showRaw(out io.Writer, reply []byte) error {
	_, err := out.Write(reply)
	return err
}

func showStatus(out io.Writer, reply []byte) error {
	v, err := read[struct {
		Name, Version, Go, Corefile string
		PID                         int
		ConfiguredSince             time.Time
		Listeners                   []struct {
			Address string
			Zones   []string
		}
	}](reply)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s-%s (%s), process %d, serves %s for %s\n\n", v.Name, v.Version, v.Go, v.PID, v.Corefile, ago(v.ConfiguredSince))
	var rows [][]any
	for _, l := range v.Listeners {
		rows = append(rows, []any{l.Address, strings.Join(l.Zones, " ")})
	}
	return table(out, "LISTENER ZONES", rows)
}

func showCache(out io.Writer, reply []byte) error {
	v, err := read[struct {
		Caches  []status.CacheStatus
		Entries []status.CacheEntry
		More    bool
	}](reply)
	if err != nil {
		return err
	}
	var rows [][]any
	if v.Caches != nil {
		for _, c := range v.Caches {
			rows = append(rows, []any{strings.Join(c.Zones, ","), orDash(c.View), c.Answers, c.Denials, octets(c.Octets), octets(c.MaxOctets)})
		}
		return table(out, "ZONES VIEW ANSWERS DENIALS SIZE OF", rows)
	}
	for _, e := range v.Entries {
		flags := strings.TrimSpace(strings.Repeat("DO ", btoi(e.DO)) + strings.Repeat("CD ", btoi(e.CD)) + e.Network)
		rows = append(rows, []any{e.Name, e.Type, e.Rcode, e.Answer, e.TTL, octets(e.Octets), orDash(flags)})
	}
	if err := table(out, "NAME TYPE RCODE RECORDS TTL SIZE FOR", rows); err != nil || !v.More {
		return err
	}
	_, err = fmt.Fprintln(out, "(and more)")
	return err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func showZones(out io.Writer, reply []byte) error {
	v, err := read[struct{ Zones []status.Zone }](reply)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, z := range v.Zones {
		state := "ok"
		switch {
		case z.Expired:
			state = "expired"
		case !z.Loaded:
			state = "missing"
		case z.Frozen:
			state = "frozen"
		case z.Failure != "":
			state = "failing"
		}
		rows = append(rows, []any{z.Name, z.Plugin, state, z.Serial, z.Records, ago(z.Since), until(z.Refresh), until(z.Expires), orDash(z.Source), orDash(z.Failure)})
	}
	return table(out, "ZONE PLUGIN STATE SERIAL RECORDS AGE REFRESH EXPIRES SOURCE FAILURE", rows)
}

func showTransfers(out io.Writer, reply []byte) error {
	v, err := read[struct{ Transfers []status.Transfer }](reply)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, t := range v.Transfers {
		rows = append(rows, []any{ago(t.Time), t.Direction, t.Zone, t.Peer, t.Serial, t.Records, orDash(t.Error)})
	}
	return table(out, "AGO DIRECTION ZONE PEER SERIAL RECORDS ERROR", rows)
}

func showUpstreams(out io.Writer, reply []byte) error {
	v, err := read[struct{ Upstreams []status.Upstream }](reply)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, u := range v.Upstreams {
		state := "up"
		if u.Down {
			state = "down"
		}
		rows = append(rows, []any{u.From, u.Plugin, u.Address, u.Protocol, state, u.Fails, u.Requests, fmt.Sprintf("%.3f", u.Mean), u.Errors, u.Checks})
	}
	return table(out, "FROM PLUGIN UPSTREAM PROTOCOL HEALTH FAILS REPLIES MEAN-MS ERRORS FAILED-CHECKS", rows)
}

func showAnchors(out io.Writer, reply []byte) error {
	v, err := read[struct {
		Anchors  []status.Anchor
		Negative []status.NegativeAnchor
	}](reply)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, a := range v.Anchors {
		since := "-"
		if !a.Since.IsZero() {
			since = a.Since.Format(time.DateOnly)
		}
		rows = append(rows, []any{a.Zone, a.Tag, a.Algorithm, a.State, since})
	}
	for _, n := range v.Negative {
		rows = append(rows, []any{n.Name, "-", "-", "negative", "until " + n.Ends.Format(time.RFC3339)})
	}
	return table(out, "ZONE TAG ALGORITHM STATE SINCE", rows)
}

func showDelegations(out io.Writer, reply []byte) error {
	v, err := read[struct{ Delegations []status.Delegation }](reply)
	if err != nil {
		return err
	}
	for _, d := range v.Delegations {
		fmt.Fprintf(out, "zone %s, from %s", d.Zone, d.From)
		if d.TTL > 0 {
			fmt.Fprintf(out, ", %s left", span(time.Duration(d.TTL)*time.Second))
		}
		if d.DS {
			fmt.Fprint(out, ", with DS")
		}
		fmt.Fprintln(out)
		if err := serverTable(out, d.Servers); err != nil {
			return err
		}
	}
	return nil
}

func showServers(out io.Writer, reply []byte) error {
	v, err := read[struct{ Servers []status.Server }](reply)
	if err != nil {
		return err
	}
	return serverTable(out, v.Servers)
}

func serverTable(out io.Writer, all []status.Server) error {
	var rows [][]any
	for _, s := range all {
		notes := []string{}
		if s.Bare {
			notes = append(notes, "no options")
		}
		if s.CaseBlind {
			notes = append(notes, "no random case")
		}
		if s.TCPOnly {
			notes = append(notes, "TCP only")
		}
		if len(s.Lame) > 0 {
			notes = append(notes, "lame for "+strings.Join(s.Lame, " "))
		}
		rtt := "-"
		if s.RTT > 0 {
			rtt = fmt.Sprintf("%.1fms", s.RTT)
		}
		rows = append(rows, []any{orDash(s.Address), orDash(s.Host), s.State, rtt, s.Timeouts, orDash(strings.Join(notes, "; "))})
	}
	return table(out, "ADDRESS HOST STATE RTT TIMEOUTS NOTES", rows)
}

func showConnections(out io.Writer, reply []byte) error {
	v, err := read[struct {
		Listeners []struct {
			Server                       string
			Connections, MostConnections uint64
			Limited                      map[string]uint64
		}
	}](reply)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, l := range v.Listeners {
		var limited []string
		for _, name := range slices.Sorted(maps.Keys(l.Limited)) {
			limited = append(limited, fmt.Sprintf("%s=%d", name, l.Limited[name]))
		}
		rows = append(rows, []any{l.Server, l.Connections, l.MostConnections, orDash(strings.Join(limited, " "))})
	}
	return table(out, "LISTENER CONNECTIONS MOST LIMITED", rows)
}

func showLimits(out io.Writer, reply []byte) error {
	v, err := read[struct {
		Memory    int64
		Listeners map[string]map[string]json.Number
	}](reply)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, server := range slices.Sorted(maps.Keys(v.Listeners)) {
		for _, name := range slices.Sorted(maps.Keys(v.Listeners[server])) {
			rows = append(rows, []any{server, name, v.Listeners[server][name]})
		}
	}
	return table(out, "LISTENER LIMIT VALUE", rows)
}

func showTop(out io.Writer, reply []byte) error {
	v, err := read[struct {
		Total uint64
		Top   []struct {
			Key     string
			Count   uint64
			Percent float64
		}
	}](reply)
	if err != nil {
		return err
	}
	var rows [][]any
	for i, t := range v.Top {
		rows = append(rows, []any{i + 1, t.Count, fmt.Sprintf("%.2f %%", t.Percent), t.Key})
	}
	if err := table(out, "PLACE QUERIES PART KEY", rows); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "of %d\n", v.Total)
	return err
}

func showCertificates(out io.Writer, reply []byte) error {
	v, err := read[struct {
		Certificates []struct {
			Listeners, Names []string
			Subject, Issuer  string
			End              time.Time
		}
	}](reply)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, c := range v.Certificates {
		rows = append(rows, []any{strings.Join(c.Listeners, ","), orDash(strings.Join(c.Names, ",")), c.End.Format(time.DateTime), until(c.End), orDash(c.Subject), orDash(c.Issuer)})
	}
	return table(out, "LISTENER NAMES END LEFT SUBJECT ISSUER", rows)
}
