package geoip

import (
	"strconv"
	"strings"
)

// schemas are those that are known.
var schemas = []schema{
	{name: "city", types: []string{"City", "Country", "Enterprise", "Location"}, labels: []label{
		{"geoip/city/name", func(r *record) string { return r.City.Names.English }},
		{"geoip/country/name", func(r *record) string { return r.Country.Names.English }},
		{"geoip/country/code", func(r *record) string { return r.Country.ISOCode }},
		{"geoip/country/is_in_european_union", func(r *record) string { return strconv.FormatBool(r.Country.IsInEU) }},
		{"geoip/continent/name", func(r *record) string { return r.Continent.Names.English }},
		{"geoip/continent/code", func(r *record) string { return r.Continent.Code }},
		{"geoip/subdivisions/code", subdivisions},
		{"geoip/latitude", func(r *record) string { return degrees(r.Location.Latitude) }},
		{"geoip/longitude", func(r *record) string { return degrees(r.Location.Longitude) }},
		{"geoip/timezone", func(r *record) string { return r.Location.TimeZone }},
		{"geoip/postalcode", func(r *record) string { return r.Postal.Code }},
	}},
	{name: "asn", types: []string{"ASN", "GeoIP2-ISP", "GeoIP2-Precision-ISP"}, labels: []label{
		{"geoip/asn/number", number},
		{"geoip/asn/org", func(r *record) string { return r.Organization }},
	}},
}

// subdivisions is the codes of the subdivisions of a country, from the largest on.
func subdivisions(r *record) string {
	codes := make([]string, len(r.Subdivisions))
	for i := range r.Subdivisions {
		codes[i] = r.Subdivisions[i].ISOCode
	}
	return strings.Join(codes, ",")
}

// degrees is a number in as few digits as it takes, "" if it is not known.
func degrees(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

// number is the number of the client's autonomous system, "" if it is not known.
func number(r *record) string {
	if r.Number == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*r.Number), 10)
}
