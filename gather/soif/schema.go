package soif

// Check compares o with the schema of its template type. The error names each
// mandatory attribute that is missing and each standard attribute whose value is
// not of its kind; it wraps fs.ErrInvalid.
func (o *Object) Check() error { return errSkeleton }
