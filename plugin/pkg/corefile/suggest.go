package corefile

// nearest is the word that differs from given by the fewest typing errors, if
// those are few enough to be a slip; else "".
func nearest(given string, words []string) string {
	best, found := (len(given)+2)/3, "" // one letter of three
	for _, w := range words {
		if d := distance(given, w); d <= best && d < len(given) {
			best, found = d-1, w
		}
	}
	return found
}

// distance is the number of letters to insert, delete, change or swap with their
// neighbour that makes b out of a (optimal string alignment).
func distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
