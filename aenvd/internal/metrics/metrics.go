// Package metrics measures the guest: processors, memory, root disk.
package metrics

import (
	"bufio"
	"fmt"
	"math"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aenvd/internal/httperr"
)

// Metrics is the body of GET /metrics. Sizes are bytes unless the name says MiB.
type Metrics struct {
	Timestamp int64 `json:"ts"`
	CPUCount  int   `json:"cpu_count"`
	// CPUUsedPct is the share of all processors together, 0 … 100, since the last request.
	CPUUsedPct  float64 `json:"cpu_used_pct"`
	MemTotal    uint64  `json:"mem_total"`
	MemUsed     uint64  `json:"mem_used"`
	MemCache    uint64  `json:"mem_cache"`
	MemTotalMiB uint64  `json:"mem_total_mib"`
	MemUsedMiB  uint64  `json:"mem_used_mib"`
	DiskUsed    uint64  `json:"disk_used"`
	DiskTotal   uint64  `json:"disk_total"`
}

// Sampler measures; it remembers the last processor times.
type Sampler struct {
	mu   sync.Mutex
	last cpuTimes
}

type cpuTimes struct{ busy, total uint64 }

// NewSampler starts at now.
func NewSampler() *Sampler {
	sampler := &Sampler{}
	sampler.last, _ = readCPU() // else the first request measures since the boot
	return sampler
}

// ServeHTTP answers GET /metrics.
func (s *Sampler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	metrics, err := s.Measure()
	if err != nil {
		httperr.Write(w, err)
		return
	}
	httperr.JSON(w, http.StatusOK, metrics)
}

// Measure reads everything now.
func (s *Sampler) Measure() (Metrics, error) {
	cpu, err := readCPU()
	if err != nil {
		return Metrics{}, err
	}
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return Metrics{}, err
	}
	memory := parseMeminfo(string(content))
	var disk unix.Statfs_t
	if err := unix.Statfs("/", &disk); err != nil {
		return Metrics{}, fmt.Errorf("statfs /: %w", err)
	}
	total := memory["MemTotal"]
	used := total - min(total, memory["MemAvailable"])
	return Metrics{
		Timestamp: time.Now().Unix(), CPUCount: runtime.NumCPU(), CPUUsedPct: s.usedSince(cpu),
		MemTotal: total, MemUsed: used, MemCache: memory["Cached"], MemTotalMiB: total >> 20, MemUsedMiB: used >> 20,
		DiskTotal: disk.Blocks * uint64(disk.Bsize), DiskUsed: (disk.Blocks - disk.Bfree) * uint64(disk.Bsize),
	}, nil
}

func (s *Sampler) usedSince(now cpuTimes) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last
	s.last = now
	if now.total <= last.total || now.busy < last.busy {
		return 0
	}
	percent := 100 * float64(now.busy-last.busy) / float64(now.total-last.total)
	return math.Round(percent*100) / 100
}

func readCPU() (cpuTimes, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}, err
	}
	return parseCPU(string(content))
}

// parseCPU reads the first line of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice, where
// user and nice contain the last two.
func parseCPU(stat string) (cpuTimes, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 5 || fields[0] != "cpu" {
		return cpuTimes{}, fmt.Errorf("/proc/stat starts with '%s'", line)
	}
	var times cpuTimes
	for i, field := range fields[1:min(len(fields), 9)] {
		value, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return cpuTimes{}, fmt.Errorf("/proc/stat: %w", err)
		}
		times.total += value
		if i != 3 && i != 4 {
			times.busy += value
		}
	}
	return times, nil
}

// parseMeminfo gives bytes by name.
func parseMeminfo(content string) map[string]uint64 {
	values := map[string]uint64{}
	scanner := bufio.NewScanner(strings.NewReader(content))
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 2 {
			continue
		}
		if value, err := strconv.ParseUint(fields[1], 10, 64); err == nil {
			values[strings.TrimSuffix(fields[0], ":")] = value << 10
		}
	}
	return values
}
