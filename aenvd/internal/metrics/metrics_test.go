package metrics

import (
	"strings"
	"testing"
)

func TestParseCPU(t *testing.T) {
	got, err := parseCPU("cpu  10 20 30 400 50 6 7 8 9 10\ncpu0 1 2 3 4\n")
	if err != nil || got.total != 531 || got.busy != 81 {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"", "cpu 1", "cpu a b c d", "intr 1 2 3 4 5"} {
		if _, err := parseCPU(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestUsedSince(t *testing.T) {
	s := Sampler{last: cpuTimes{busy: 100, total: 1000}}
	if got := s.usedSince(cpuTimes{busy: 150, total: 1100}); got != 50 {
		t.Errorf("got %v", got)
	}
	if got := s.usedSince(cpuTimes{busy: 10, total: 20}); got != 0 {
		t.Errorf("times that went back gave %v", got)
	}
}

func TestMeasure(t *testing.T) {
	got, err := NewSampler().Measure()
	if err != nil || got.CPUCount < 1 || got.MemTotal == 0 || got.MemUsed > got.MemTotal || got.DiskUsed > got.DiskTotal || got.DiskTotal == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("cpu 1 2 3 4 5")
	f.Add("MemTotal: 12 kB\nCached: x")
	f.Fuzz(func(t *testing.T, content string) {
		if _, err := parseCPU(content); err == nil && !strings.HasPrefix(strings.TrimSpace(content), "cpu") {
			t.Errorf("%q was accepted", content)
		}
		for name := range parseMeminfo(content) {
			if strings.ContainsAny(name, " \n") {
				t.Errorf("name %q", name)
			}
		}
	})
}
