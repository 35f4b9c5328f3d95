package live

// maxPoints is how many points a series keeps.
const maxPoints = 720

// series is a sequence of points that grows without end. The newest are all there; of older ones every second, fourth,
// eighth... is. The first one stays. The zero value is empty.
type series[T any] struct{ points []T }

// Add appends a point. It costs a constant time on average.
func (s *series[T]) Add(p T) {
	if len(s.points) == maxPoints {
		kept := s.points[:0]
		for i, p := range s.points {
			if i%2 == 0 || i >= maxPoints/3*2 {
				kept = append(kept, p)
			}
		}
		s.points = kept
	}
	s.points = append(s.points, p)
}

// Points are those that are kept, oldest first. The caller does not change them, nor use them after the next Add.
func (s *series[T]) Points() []T { return s.points }
