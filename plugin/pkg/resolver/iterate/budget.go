package iterate

// Budget is what one client's question may cost, inner ones, retries and repeats over
// TCP included. It is never reset, so that no zone can have more asked than this:
// neither by servers without addresses (NXNSAttack, CVE-2020-8616) nor by chains of
// aliases (CAMP), nor by zones whose servers lie in each other (TsuNAME).
type Budget struct {
	Queries int // to servers
	Depth   int // of questions for the sake of others
	Aliases int // CNAME and DNAME steps
	Hosts   int // names of servers that are used of one delegation
	Octets  int // received
}

const (
	addressQuestions = 10 // for addresses of servers, a client's question
	uselessHosts     = 5  // names of servers without any address, after which no more are tried
	perServer        = 3  // queries to one server, for one question (RFC 9520 §3.1)
	perQuestion      = 16 // queries for one question, over all servers
	perFamily        = 2  // addresses of one name that are used
	deadProbes       = 2  // queries to servers that count as dead, for one question
	lameProbes       = 4  // queries to servers that were lame before, for one question
)

// spending is what a Run has cost.
type spending struct {
	queries   int
	octets    int
	addresses int // questions for them
}

// affords reports whether one more query may be sent; why says what is spent if not.
func (r *Run) affords() (why string, ok bool) {
	switch {
	case r.spent.queries >= r.conf.Budget.Queries, r.ahead && r.spent.queries >= aheadQueries:
		return "too many queries", false
	case r.spent.octets >= r.conf.Budget.Octets:
		return "too many octets", false
	}
	return "", true
}
