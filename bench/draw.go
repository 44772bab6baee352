package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sizes of a picture, in pixels.
const (
	pictureWidth, pictureHeight = 640, 400
	left, right, top, bottom    = 80, 120, 40, 50
)

// colours are told apart by people who see few of them, on light and on dark.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"}

// draw is a curve as SVG, a line for each server, both axes logarithmic.
func draw(c curve, lines map[string][]point) string {
	x, y := newAxis(left, pictureWidth-right), newAxis(pictureHeight-bottom, top)
	for _, line := range lines {
		for _, p := range line {
			x.include(float64(p.size))
			y.include(p.figure)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="gray">`+"\n", pictureWidth, pictureHeight)
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="15">%s: %s</text>`+"\n", left, c.title, c.unit)
	fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", (left+pictureWidth-right)/2, pictureHeight-10, c.of)
	for _, v := range x.ticks() {
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="gray" stroke-opacity=".3"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x.at(v), top, pictureHeight-bottom, x.at(v), pictureHeight-bottom+18, short(v))
	}
	for _, v := range y.ticks() {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="gray" stroke-opacity=".3"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, y.at(v), pictureWidth-right, left-6, y.at(v)+4, short(v))
	}
	for i, name := range slices.Sorted(maps.Keys(lines)) {
		colour := colours[i%len(colours)]
		var path []string
		for _, p := range lines[name] {
			at := fmt.Sprintf("%.1f,%.1f", x.at(float64(p.size)), y.at(p.figure))
			path = append(path, at)
			cx, cy, _ := strings.Cut(at, ",")
			fmt.Fprintf(&b, `<circle cx="%s" cy="%s" r="3" fill="%s"><title>%s: %.4g %s at %d %s</title></circle>`+"\n", cx, cy, colour, name, p.figure, c.unit, p.size, c.of)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), colour)
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", pictureWidth-right+10, top+10+18*i, colour, name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// axis is a logarithmic one, of whole decades.
type axis struct {
	from, to  float64 // pixels
	low, high float64 // exponents of ten
}

func newAxis(from, to float64) *axis {
	return &axis{from: from, to: to, low: math.Inf(1), high: math.Inf(-1)}
}

// least is drawn for less: a logarithm has no place for nothing.
const least = 0.01

func (a *axis) include(v float64) {
	e := math.Log10(max(v, least))
	a.low, a.high = min(a.low, math.Floor(e)), max(a.high, math.Ceil(e))
	if a.low == a.high {
		a.high++
	}
}

func (a *axis) at(v float64) float64 {
	return a.from + (a.to-a.from)*(math.Log10(max(v, least))-a.low)/(a.high-a.low)
}

// ticks is the powers of ten on the axis.
func (a *axis) ticks() (all []float64) {
	for e := a.low; e <= a.high; e++ {
		all = append(all, math.Pow(10, e))
	}
	return all
}

// short is a number in a form that is short.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 3, 64) + "M"
	case v >= 1e3:
		return strconv.FormatFloat(v/1e3, 'g', 3, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
