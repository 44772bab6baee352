package validate

// Budget bounds the work that a client's query can cause, whatever zones hold:
// keys of equal tag and many signatures (CVE-2023-50387), NSEC3 records that
// cost many hashes (CVE-2023-50868), long chains. What fails before
// arithmetic, such as a signature whose time is over, costs nothing.
type Budget struct {
	Sigs    int // signatures of one RRset that are tried
	Tagged  int // keys of one tag and algorithm that are tried
	Trials  int // key by signature, for one RRset
	Checks  int // signatures computed in all; costly ones count as several (key.weight)
	DS      int // DS records looked at, for one zone
	Keys    int // DNSKEY records kept of one zone
	NSEC3   int // records of one denial
	Hashes  int // blocks of SHA-1 for NSEC3, in all: those of the iterations, one at least for each name
	Any     int // RRsets of a reply to ANY
	Fetches int // DS and DNSKEY RRsets asked for
}

// DefaultBudget is the usual one.
func DefaultBudget() Budget {
	return Budget{Sigs: 8, Tagged: 2, Trials: 16, Checks: 48, DS: 8, Keys: 32, NSEC3: 8, Hashes: 150, Any: 24, Fetches: 64}
}
