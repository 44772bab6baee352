package house

import (
	"strings"
	"testing"
)

// banned are words that have given way to better ones, by the folder in whose declarations they must not come back. docs/GLOSSARY.md has
// those that hold.
var banned = map[string]string{
	"core": "waitingQuery laterOn stint turn relief tempo leader promptHandler promptCall steering pace consider restless gather " +
		"gathered gatherConn outbox mailbag otherDescriptors readOthers back backRoom datagramBack packetBack room AddrRoom addrRoom outlet " +
		"responder takeReply extras extrasOf misfit admitted inFlight endpoint hurry patience replyStack fullStacks attempt origin laneOrigin " +
		"enterLane NextMsg CollectKey",
	"core/internal/conn":       "crowded ticket",
	"core/internal/reusegroup": "crowded",
	"core/dnsserver":           "place",
	"plugin/pkg/wire":          "AddrRoom laneOrigin enterLane Lane PerLane NewLane LaneResumer SetLane",
	"plugin/pkg/mmsg":          "outbox mailbag",
	"plugin":                   "NextMsg CollectKey",
	"plugin/cache":             "prompt lot dear cheap boards boarded reach asking laneRefresh",
	"plugin/forward":           "errand task relay fleet world verb fault breather race racer endRace tapped tapper",
	"plugin/rewrite":           "passage former",
	"plugin/throttle":          "visit turns",
}

// TestBannedWords finds declarations with a word that is not used any more: of package level, methods, fields.
func TestBannedWords(t *testing.T) {
	x := theIndex()(t)
	for folder, words := range banned {
		for dir, p := range x.packages {
			if dir != folder && !strings.HasPrefix(dir, folder+"/") {
				continue
			}
			for _, word := range strings.Fields(words) {
				if files := p.decls[word]; files != nil {
					t.Errorf("%v declares %s", files, word)
				}
				for member, files := range p.members {
					if strings.HasSuffix(member, "."+word) {
						t.Errorf("%v declares %s", files, member)
					}
				}
			}
		}
	}
}

// TestGlossary looks up what each word is defined by.
func TestGlossary(t *testing.T) {
	x, words := theIndex()(t), map[string]bool{}
	for _, row := range rowsOf(page(t, "docs/GLOSSARY.md")) {
		if len(row) != 3 {
			t.Errorf("a row of %d cells: %v", len(row), row)
			continue
		}
		if words[row[0]] {
			t.Errorf("%s stands there twice", row[0])
		}
		words[row[0]] = true
		names := quotedIn(row[2])
		if len(names) == 0 {
			t.Errorf("%s: it is not said where it is defined", row[0])
		}
		for _, name := range names {
			if _, ok := x.resolve(nil, name); !ok && !x.hasFile("docs/GLOSSARY.md", name) {
				t.Errorf("%s: there is no %s", row[0], name)
			}
		}
	}
	if len(words) < 25 {
		t.Errorf("only %d words", len(words))
	}
}
