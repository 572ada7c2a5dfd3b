import type en from './en.json';

type English = typeof en;

/** The text for each plural form of the language (`Intl.PluralRules`). `other` is always present. */
export type PluralForms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** Texts that have only one form. */
export type TextKey = { [Key in keyof English]: English[Key] extends string ? Key : never }[keyof English];

/** Texts whose form depends on a number. */
export type PluralKey = Exclude<keyof English, TextKey>;

/** A language's texts. Tests check that it has every key in the English catalogue. `{name}` is a placeholder, and `**…**` is strong. */
export type Catalogue = Record<TextKey, string> & Record<PluralKey, PluralForms>;
