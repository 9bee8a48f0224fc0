"""Mutated trees and the bounded checks of them."""
