package zonefile

import "bytes"

// inFull is the words of a LOC record (RFC 1876 §3) in the form in which miekg/dns reads them right: it wants seconds
// where there are minutes, and takes thousandths of a second for the next lower ones.
func inFull(words []word) []word {
	var all []word
	numbers := 0 // of the coordinate: degrees, minutes, seconds
	for i, w := range words {
		switch string(bytes.ToUpper(w.text)) {
		case "N", "S":
			if numbers == 2 {
				all = append(all, word{text: []byte("0")})
			}
			numbers = 0
		case "E", "W":
			if numbers == 2 {
				all = append(all, word{text: []byte("0")})
			}
			return append(all, words[i:]...) // what is behind is heights
		default:
			if numbers++; numbers == 3 {
				w.text = pastThousandths(w.text)
			}
		}
		all = append(all, w)
	}
	return all
}

// pastThousandths is a number of seconds in the midst between its thousandth and the next one.
func pastThousandths(seconds []byte) []byte {
	_, fraction, ok := bytes.Cut(seconds, []byte{'.'})
	if !ok || len(fraction) > 3 {
		return seconds
	}
	return append(append(bytes.Clone(seconds), "000"[len(fraction):]...), '5')
}
