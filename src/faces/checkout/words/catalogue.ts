import type en from './en.json';

type English = typeof en;

/** One text per plural form of the language (`Intl.PluralRules`). `other` is always present. */
export type PluralForms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** Texts with one form. */
export type TextKey = { [Key in keyof English]: English[Key] extends string ? Key : never }[keyof English];

/** Texts with a form per number. */
export type PluralKey = Exclude<keyof English, TextKey>;

/**
 * The texts of a language. The tests check that it has every key of the English catalogue. `{name}` is a placeholder, `**…**` is strong.
 */
export type Catalogue = Record<TextKey, string> & Record<PluralKey, PluralForms>;
