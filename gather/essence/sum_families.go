package essence

// documentFamily are the types of documents that have a format of their own.
func documentFamily() map[string]entry {
	m := map[string]entry{
		"Pdf":         {sum: sumPDF, bytes: true},
		"EPUB":        {sum: sumEPUB, bytes: true},
		"FictionBook": {sum: sumFictionBook},
		"Image":       {sum: sumImage, bytes: true},
		"Audio":       {sum: sumAudio, bytes: true},
		"Video":       {sum: sumVideo, bytes: true},
		"Font":        {sum: sumFont, bytes: true},
		"SVG":         {sum: sumSVG},
		"RTF":         {sum: sumRTF, bytes: true},
		"PostScript":  {sum: sumPostScript, bytes: true},
		"Tex":         {sum: sumTeX},
		"LaTeX":       {sum: sumTeX},
		"Texinfo":     {sum: sumTexinfo},
		"Info":        {sum: sumInfo},
		"Troff":       {sum: sumTroff},
		"Dvi":         {sum: sumDvi, bytes: true},
	}
	for _, typ := range []string{"Word", "Excel", "PowerPoint", "Visio"} {
		m[typ] = entry{sum: sumOOXML, bytes: true}
	}
	for _, typ := range []string{"ODText", "ODSpreadsheet", "ODPresentation", "ODDrawing", "ODFormula"} {
		m[typ] = entry{sum: sumODF, bytes: true}
	}
	for _, typ := range []string{"WordOLE", "ExcelOLE", "PowerPointOLE", "VisioOLE", "OutlookMessage", "OLE"} {
		m[typ] = entry{sum: sumOLE2, bytes: true}
	}
	return m
}
