import fc from 'fast-check';

// That a property fails is all that a change must show; the smallest case that makes it fail is of no use, and takes long to find.
fc.configureGlobal({ endOnFailure: true });
