package control

import (
	"net/http"
	"sort"
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// validators is the plugins that validate signatures.
func (a *api) validators() (all []status.Anchors) {
	for _, h := range a.handlers() {
		if v, ok := h.(status.Anchors); ok {
			all = append(all, v)
		}
	}
	return all
}

func (a *api) anchors(*http.Request) (any, error) {
	keys, negative := []status.Anchor{}, []status.NegativeAnchor{}
	for _, v := range a.validators() {
		k, n := v.AnchorStatus()
		keys, negative = append(keys, k...), append(negative, n...)
	}
	sort.Slice(keys, func(i, j int) bool {
		if keys[i].Zone != keys[j].Zone {
			return keys[i].Zone < keys[j].Zone
		}
		return keys[i].Tag < keys[j].Tag
	})
	sort.Slice(negative, func(i, j int) bool { return negative[i].Name < negative[j].Name })
	return map[string]any{"anchors": keys, "negative": negative}, nil
}

const usualNegative = time.Hour // RFC 7646 §2 wants them short

// addNegative holds for all plugins that validate.
func (a *api) addNegative(r *http.Request) (any, error) {
	name, err := nameParameter(r, "a domain name")
	if err != nil {
		return nil, err
	}
	d := usualNegative
	if text := r.FormValue("duration"); text != "" {
		if d, err = time.ParseDuration(text); err != nil {
			return nil, refusef("duration must be a time such as 30m or 24h: %q", text)
		}
	}
	all := a.validators()
	if len(all) == 0 {
		return nil, &refusal{http.StatusNotFound, "no plugin validates"}
	}
	for _, v := range all {
		if err := v.AddNegative(name, d); err != nil {
			return nil, refusef("%v", err)
		}
	}
	return map[string]any{"name": wire.Text(name), "ends": time.Now().Add(d).Truncate(time.Second)}, nil
}

func (a *api) dropNegative(r *http.Request) (any, error) {
	name, err := nameParameter(r, "a domain name")
	if err != nil {
		return nil, err
	}
	n := 0
	for _, v := range a.validators() {
		dropped, err := v.DropNegative(name)
		if err != nil {
			return nil, err
		}
		if dropped {
			n++
		}
	}
	if n == 0 {
		return nil, &refusal{http.StatusNotFound, "there is no negative trust anchor " + wire.Text(name)}
	}
	return map[string]int{"dropped": n}, nil
}
