import fc from 'fast-check';

// It's enough that a property fails; finding the smallest failing case takes long and isn't needed.
fc.configureGlobal({ endOnFailure: true });
