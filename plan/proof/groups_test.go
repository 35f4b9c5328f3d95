package proof_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tensile/graph"
	"tensile/internal/golden"
	"tensile/internal/long"
	"tensile/models/graphtest"
	"tensile/plan/compile"
	"tensile/plan/plantest"
	"tensile/plan/program"
	"tensile/plan/proof"
)

// pageSet is a set of pages, by number.
type pageSet []bool

func (s pageSet) add(t pageSet) {
	for n, in := range t {
		s[n] = s[n] || in
	}
}

func (s pageSet) count() int {
	n := 0
	for _, in := range s {
		if in {
			n++
		}
	}
	return n
}

func (s pageSet) pages() program.Pages {
	var p program.Pages
	for n, in := range s {
		switch {
		case !in:
		case n > 0 && s[n-1]:
			p[len(p)-1].To++
		default:
			p = append(p, program.PageRange{From: n, To: n + 1})
		}
	}
	return p
}

func setOf(p program.Pages, size int) pageSet {
	s := make(pageSet, size)
	for _, r := range p {
		for n := r.From; n < r.To; n++ {
			s[n] = true
		}
	}
	return s
}

// pageOracle is the slow oracle of groups: it goes backwards through the bytes of the arena, from those that somebody
// reads next.
type pageOracle struct {
	s     subject
	page  graph.Bytes
	base  pageSet
	needs [2][]pageSet // per command of body and snapshot: pages that it needs by itself
}

func newPageOracle(s subject, page graph.Bytes) *pageOracle {
	o := &pageOracle{s: s, page: page}
	o.base = o.lie(o.boundary())
	for _, section := range []*program.Section{&s.c.Prologue, &s.c.Epilogue} {
		for _, need := range o.backwards(section, make([]bool, s.c.Arena)) {
			o.base.add(need)
		}
	}
	for _, needs := range o.needs {
		if len(needs) > 0 {
			needs[0].add(o.base)
			needs[len(needs)-1].add(o.base)
		}
	}
	return o
}

// boundary returns the bytes that are read after an iteration boundary before they are written. It finds the pages of
// each command on the way.
func (o *pageOracle) boundary() (live []bool) {
	live = make([]bool, o.s.c.Arena)
	for before := -1; ; {
		count := 0
		after := make([]bool, o.s.c.Arena)
		o.backwards(&o.s.c.Epilogue, after)
		for i, section := range []*program.Section{&o.s.c.Body, &o.s.c.Snapshot} {
			live := slices.Clone(live)
			o.needs[i] = o.backwards(section, live)
			for b := range live {
				after[b] = after[b] || live[b]
			}
		}
		for _, live := range after {
			if live {
				count++
			}
		}
		if live = after; count == before {
			return live
		}
		before = count
	}
}

// backwards returns the pages of each command of a section: those of bytes that it uses, and of bytes that are read
// after it before they are written. live are the latter after the section, and become those before.
func (o *pageOracle) backwards(section *program.Section, live []bool) []pageSet {
	needs := make([]pageSet, len(section.Commands))
	for i := len(needs) - 1; i >= 0; i-- {
		needs[i] = o.lie(live)
		for _, write := range []bool{true, false} {
			for _, u := range plantest.Spans(o.s.g, o.s.c, &section.Commands[i]) {
				if u.Region != program.Region(program.Arena) || u.Write != write {
					continue
				}
				for b := u.From; b < u.To; b++ {
					needs[i][b/o.page] = true
					live[b] = !write
				}
			}
		}
	}
	return needs
}

// lie returns the pages that bytes lie on.
func (o *pageOracle) lie(bytes []bool) pageSet {
	s := make(pageSet, (len(bytes)+int(o.page)-1)/int(o.page))
	for b, in := range bytes {
		if in {
			s[b/int(o.page)] = true
		}
	}
	return s
}

// need returns the fewest pages for some commands.
func (o *pageOracle) need(section, from, to int) pageSet {
	all := make(pageSet, len(o.base))
	for _, s := range o.needs[section][from:to] {
		all.add(s)
	}
	return all
}

// groups cuts a section by the rule of Divide.
func (o *pageOracle) groups(section int, every graph.Bytes) []program.Group {
	var groups []program.Group
	from := 0
	for i := range o.needs[section] {
		least := math.MaxInt
		for _, s := range o.needs[section][from : i+1] {
			least = min(least, s.count())
		}
		if excess := o.need(section, from, i+1).count() - least; i > from && graph.Bytes(excess)*o.page >= every {
			groups = append(groups, program.Group{From: from, To: i, Need: o.need(section, from, i).pages()})
			from = i
		}
	}
	if n := len(o.needs[section]); n > 0 {
		groups = append(groups, program.Group{From: from, To: n, Need: o.need(section, from, n).pages()})
	}
	return groups
}

// accepts reports whether groups of the right commands need enough pages.
func (o *pageOracle) accepts(d *program.Groups) bool {
	enough := func(got program.Pages, want pageSet) bool {
		have := setOf(got, len(want))
		for n, in := range want {
			if in && !have[n] {
				return false
			}
		}
		return true
	}
	ok := enough(d.Base, o.base)
	for section, groups := range [][]program.Group{d.Body, d.Snapshot} {
		for i, g := range groups {
			want := o.need(section, g.From, g.To)
			if i == 0 || i == len(groups)-1 {
				want.add(setOf(d.Base, len(want)))
			}
			ok = ok && enough(g.Need, want)
		}
	}
	return ok
}

// pagesFor returns a size of pages and a distance of cuts for a program.
func pagesFor(rng *rand.Rand, s subject) (page, every graph.Bytes) {
	arena := int(s.c.Arena)
	page = graph.Bytes([]int{1 + rng.IntN(arena/2), align, 1 + arena/(1+rng.IntN(60)), arena, 2 * arena}[rng.IntN(5)])
	every = graph.Bytes([]int{1 + rng.IntN(arena), 1 + arena/(1+rng.IntN(30)), 1, 3 * arena}[rng.IntN(4)])
	return page, every
}

// Whatever the plan, the size of pages and the distance of cuts: groups are cut where the rule says, they need the
// fewest pages, and CheckGroups accepts them.
func TestDivide(t *testing.T) {
	seeds := long.Rounds(60, 600)
	groups, snapshots := 0, 0
	for seed := range seeds {
		d := dividedOf(t, seed)
		groups += len(d.Body) + len(d.Snapshot)
		if len(d.Snapshot) > 0 {
			snapshots++
		}
	}
	if t.Logf("%d groups, %d snapshots", groups, snapshots); groups < 4*int(seeds) || snapshots < int(seeds)/3 {
		t.Errorf("%d groups, %d snapshots of %d programs", groups, snapshots, seeds)
	}
}

func FuzzDivide(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { dividedOf(t, seed) })
}

// dividedOf divides the program of a seed and compares the groups with those of the oracle.
func dividedOf(t *testing.T, seed uint64) *program.Groups {
	s := random(t, seed, graphtest.Options{Ops: 16})
	page, every := pagesFor(rand.New(rand.NewPCG(seed, 17)), s)
	proven := s.proven(t)
	divided, err := compile.ProveGroups(proven, page, every)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	if divided.Proven() != proven {
		t.Fatalf("%s: groups of another program", s.name)
	}
	d, o := divided.Groups(), newPageOracle(s, page)
	if want := o.base.pages(); d.Page != page || !slices.Equal(d.Base, want) {
		t.Fatalf("%s: Base is %v of %d bytes, want %v of %d", s.name, d.Base, d.Page, want, page)
	}
	peak := o.base.count()
	for i, section := range []*program.Section{&s.c.Body, &s.c.Snapshot} {
		got, want := d.Of(s.c, section), o.groups(i, every)
		if !slices.EqualFunc(got, want, func(a, b program.Group) bool {
			return a.From == b.From && a.To == b.To && slices.Equal(a.Need, b.Need)
		}) {
			t.Fatalf("%s, pages of %d, every %d: groups of section %d are\n%v, want\n%v", s.name, page, every, i, got,
				want)
		}
		for k, rest := range restsOf(got) {
			most := 0
			for _, g := range want[k:] {
				most = max(most, o.need(i, g.From, g.To).count())
			}
			if peak = max(peak, most); rest != most {
				t.Fatalf("%s: from group %d of section %d on the most is %d pages, want %d", s.name, k, i, rest, most)
			}
		}
	}
	if d.Peak() != peak {
		t.Fatalf("%s: the most pages of a group are %d, want %d", s.name, d.Peak(), peak)
	}
	return d
}

// restsOf returns, per group, the most pages that it or one after it needs.
func restsOf(groups []program.Group) []int {
	rests := make([]int, len(groups))
	most := 0
	for i := len(groups) - 1; i >= 0; i-- {
		most = max(most, groups[i].Need.Count())
		rests[i] = most
	}
	return rests
}

// Without a distance of cuts it is a 32nd of the arena, or a page. A program that was not proven has no groups.
func TestDivideByItself(t *testing.T) {
	for seed := range uint64(40) {
		s := random(t, seed, graphtest.Options{Ops: 16})
		for _, page := range []graph.Bytes{1, s.c.Arena/32 + 1} {
			got, want := compile.Divide(s.c, page, 0), compile.Divide(s.c, page, max(s.c.Arena/32, page))
			if got.Text() != want.Text() {
				t.Fatalf("%s: groups are\n%s, want\n%s", s.name, got.Text(), want.Text())
			}
		}
	}
	if _, err := compile.ProveGroups(proof.Proven{}, 1, 0); err == nil {
		t.Error("groups of no program")
	}
}

// A distance of cuts that memory never grows by leaves each section one group, which needs every page in use.
func TestDivideOnce(t *testing.T) {
	for seed := range uint64(40) {
		s := random(t, seed, graphtest.Options{Ops: 16})
		d := compile.Divide(s.c, 100, math.MaxInt64)
		all := newPageOracle(s, 100)
		for i, section := range []*program.Section{&s.c.Body, &s.c.Snapshot} {
			groups := d.Of(s.c, section)
			if len(section.Commands) == 0 && len(groups) == 0 {
				continue
			}
			want := all.need(i, 0, len(section.Commands)).pages()
			if len(groups) != 1 || groups[0].To != len(section.Commands) || !slices.Equal(groups[0].Need, want) {
				t.Fatalf("%s: section %d has groups %v, want one that needs %v", s.name, i, groups, want)
			}
		}
	}
}

// testdata/groups.txt shows the commands of a small network that swaps, and its groups.
func TestDivideGolden(t *testing.T) {
	s := network(t, "mlp", 60)
	d := compile.Divide(s.c, 64*graph.KiB, 4*graph.MiB)
	golden.Compare(t, "testdata/groups.txt", d.Text()+s.c.Text())
}

// A group may need more than it uses, and be cut where nothing has changed: that is safe.
func TestMoreThanNeeded(t *testing.T) {
	for _, s := range subjects(t) {
		d := s.divided().d
		last := int((s.c.Arena - 1) / d.Page)
		for _, groups := range []*[]program.Group{&d.Body, &d.Snapshot} {
			for i := 0; i < len(*groups); i += 2 {
				g := &(*groups)[i]
				g.Need = g.Need.Union(program.Pages{{From: last - last/(i+1), To: last + 1}})
				if half := (g.From + g.To) / 2; half > g.From {
					second := *g
					g.To, second.From = half, half
					*groups = slices.Insert(*groups, i+1, second)
				}
			}
		}
		if err := proof.CheckGroups(s.c, d); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// CheckGroups accepts groups, cut anywhere, with pages taken away and added at random, if and only if the oracle does.
func TestCheckGroupsAgainstOracle(t *testing.T) {
	seeds := long.Rounds(60, 600)
	accepted, rejected := 0, 0
	for seed := range seeds {
		s := random(t, seed, graphtest.Options{Ops: 16})
		rng := rand.New(rand.NewPCG(seed, 18))
		if seed%2 == 0 {
			s = s.copiesAll(t)
		}
		page, _ := pagesFor(rng, s)
		o := newPageOracle(s, page)
		d := &program.Groups{Page: page, Base: o.base.pages(), Body: o.anyGroups(rng, 0), Snapshot: o.anyGroups(rng, 1)}
		for change := range 12 {
			changed := *d
			changed.Body, changed.Snapshot = slices.Clone(d.Body), slices.Clone(d.Snapshot)
			for range change {
				o.shake(rng, &changed)
			}
			err := proof.CheckGroups(s.c, &changed)
			if want := o.accepts(&changed); (err == nil) != want {
				t.Fatalf("%s, pages of %d: CheckGroups says %v, the oracle %v\n%v\nof fewest pages\n%v", s.name, page,
					err, want, changed, *d)
			}
			if err == nil {
				accepted++
			} else {
				rejected++
			}
		}
	}
	t.Logf("%d accepted, %d rejected", accepted, rejected)
	if accepted < int(seeds) || rejected < int(seeds) {
		t.Errorf("%d accepted, %d rejected, of %d programs", accepted, rejected, seeds)
	}
}

// copiesAll returns a copy whose epilogue also copies out what the host has: then there is content that is read by the
// epilogue alone.
func (s subject) copiesAll(t *testing.T) subject {
	s = s.withProgram()
	have := make(map[graph.StorageID]bool)
	for _, cmd := range s.c.Epilogue.Commands {
		have[cmd.Storage] = true
	}
	for _, cmd := range s.c.Body.Commands {
		if cmd.Kind != program.Out || have[cmd.Storage] || !slices.Contains(s.p.Entry, cmd.Storage) {
			continue
		}
		have[cmd.Storage] = true
		cmd.Waits, cmd.Hold, cmd.Slot, cmd.Version = nil, 0, -1, 0
		cmd.Device.Offset = s.l.Offsets[s.l.Stays.Entry[cmd.Storage]]
		s.c.Epilogue.Commands = append(s.c.Epilogue.Commands, cmd)
		s.c.Epilogue.Counts[onCopyOut]++
	}
	if err := check(s); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return s
}

// Of groups of the fewest pages, cut anywhere, none may leave out a page.
func TestCheckGroupsMissesNoPage(t *testing.T) {
	seeds := long.Rounds(40, 100)
	tried := 0
	for seed := range seeds {
		s := random(t, seed, graphtest.Options{Ops: 12}).copiesAll(t)
		o := newPageOracle(s, 1+s.c.Arena/24)
		rng := rand.New(rand.NewPCG(seed, 19))
		d := &program.Groups{Page: o.page, Base: o.base.pages(), Body: o.anyGroups(rng, 0),
			Snapshot: o.anyGroups(rng, 1)}
		if err := proof.CheckGroups(s.c, d); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		for section, groups := range [][]program.Group{d.Body, d.Snapshot} {
			for i := range groups {
				whole := groups[i].Need
				for page := range onePage(whole) {
					groups[i].Need = whole.Without(page)
					if err := proof.CheckGroups(s.c, d); err == nil {
						t.Fatalf("%s: section %d, group %d: page %v is not missed in %v", s.name, section, i, page, *d)
					}
					tried++
				}
				groups[i].Need = whole
			}
		}
	}
	if t.Logf("%d pages", tried); tried < 50*int(seeds) {
		t.Errorf("%d pages", tried)
	}
}

// anyGroups cuts a section anywhere.
func (o *pageOracle) anyGroups(rng *rand.Rand, section int) []program.Group {
	var groups []program.Group
	from, often := 0, 1+rng.IntN(12)
	for i := range o.needs[section] {
		if to := i + 1; to == len(o.needs[section]) || rng.IntN(often) == 0 {
			groups = append(groups, program.Group{From: from, To: to, Need: o.need(section, from, to).pages()})
			from = to
		}
	}
	return groups
}

// shake takes a page from a group or from Base, or adds some, which is more often.
func (o *pageOracle) shake(rng *rand.Rand, d *program.Groups) {
	places := []*program.Pages{&d.Base}
	for _, groups := range [][]program.Group{d.Body, d.Snapshot} {
		for i := range groups {
			places = append(places, &groups[i].Need)
		}
	}
	at := places[rng.IntN(len(places))]
	n := rng.IntN(len(o.base))
	one := program.Pages{{From: n, To: n + 1}}
	if rng.IntN(6) == 0 {
		*at = (*at).Without(one)
	} else if at != &d.Base {
		*at = (*at).Union(one)
	}
}
