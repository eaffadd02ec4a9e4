package essence

func (p *page) language() string { return p.told.lang }
